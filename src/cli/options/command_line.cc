#include "cli/options/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/exit_code.h"
#include "cli/options/arguments.h"
#include "cli/options/help.h"
#include "cli/terminal/output.h"

namespace godwit::cli {
namespace {

// "--top-k" -> "GODWIT_TOP_K"
std::string VariableName(std::string_view long_name) {
  std::string name = "GODWIT_";
  for (const char c : long_name.substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

bool Contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

CommandLine::CommandLine(std::string verb, std::string synopsis, std::string summary)
    : verb_(std::move(verb)), synopsis_(std::move(synopsis)), summary_(std::move(summary)) {}

void CommandLine::Group(std::string title) { group_ = std::move(title); }

void CommandLine::Add(Flag flag, std::function<void(const std::string& value)> take) {
  Entry entry{.flag = std::move(flag), .group = group_, .take = std::move(take)};
  std::string_view names = entry.flag.names;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    (name.starts_with("--") ? entry.long_names : entry.short_names).emplace_back(name);
    names.remove_prefix(std::min(name.size() + 1, names.size()));
  }
  entries_.push_back(std::move(entry));
}

void CommandLine::Add(Flag flag, std::string& target) {
  Add(std::move(flag), [&target](const std::string& value) { target = value; });
}

void CommandLine::Add(Flag flag, std::optional<std::string>& target) {
  Add(std::move(flag), [&target](const std::string& value) { target = value; });
}

void CommandLine::Add(Flag flag, std::vector<std::string>& target) {
  Add(std::move(flag), [&target](const std::string& value) { target.push_back(value); });
}

void CommandLine::Add(Flag flag, float& target) {
  Add(std::move(flag), [&target](const std::string& value) { target = ParseFloat(value); });
}

void CommandLine::Add(Flag flag, bool& target) {
  Add(std::move(flag), [&target](const std::string& value) { target = ParseBool(value); });
}

void CommandLine::RefusePlot() { refuses_plot_ = true; }

void CommandLine::Exclusive(std::vector<std::string> long_names) {
  exclusive_.push_back(std::move(long_names));
}

bool CommandLine::Parse(std::span<const std::string> arguments) {
  if (Find("--help") == nullptr) {
    Group("Help");
    Add({.names = "-h,--help", .value = "", .help = "show this"}, help_);
  }
  for (Entry& entry : entries_) entry.given = false;
  ReadArguments(arguments);
  if (help_) {
    WriteOutput(Help());
    return false;
  }
  ReadEnvironment();
  return true;
}

std::vector<std::string> CommandLine::AllNames() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    names.insert(names.end(), entry.long_names.begin(), entry.long_names.end());
    names.insert(names.end(), entry.short_names.begin(), entry.short_names.end());
  }
  return names;
}

CommandLine::Entry* CommandLine::Find(std::string_view name) {
  for (Entry& entry : entries_) {
    if (Contains(entry.long_names, name) || Contains(entry.short_names, name)) return &entry;
  }
  return nullptr;
}

void CommandLine::TakeValue(Entry& entry, const std::string& name, const std::string& value) {
  try {
    entry.take(value);
  } catch (const Error& error) {
    Throw(error.kind(), "{}: {}", name, error.what());
  }
  entry.given = true;
}

// CLI11 splits the arguments into flags and their values; everything that a user sees (help,
// messages, conversions) is made here.
void CommandLine::ReadArguments(std::span<const std::string> arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<std::string, std::string, std::less<>> long_names;
  std::vector<CLI::Option*> options;
  for (const Entry& entry : entries_) {
    std::string names;
    for (const std::string& name : entry.long_names) names += (names.empty() ? "" : ",") + name;
    for (const std::string& name : entry.short_names) {
      if (name.size() > 2) {
        long_names[name] = entry.long_names.front();
      } else {
        names += "," + name;
      }
    }
    options.push_back(entry.is_switch()
                          ? app.add_flag(names)
                          : app.add_option(names, [](const CLI::results_t&) { return true; }));
    options.back()->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  }
  auto rewritten = RewriteArguments(
      arguments, long_names,
      [this](std::string_view name) {
        const Entry* entry = Find(name);
        return entry != nullptr && !entry->is_switch();
      },
      [this](const std::string& flag) { RefuseArgument(flag); });
  std::reverse(rewritten.begin(), rewritten.end());  // as CLI11 wants them
  try {
    app.parse(rewritten);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::kInput, error.what());
  }
  const std::vector<std::string> unknown = app.remaining();
  for (const std::string& argument : unknown) {
    if (argument != "--") RefuseArgument(argument);
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    for (const std::string& value : options[i]->results()) {
      TakeValue(entries_[i], entries_[i].long_names.front(), value);
    }
    const Entry* rival = entries_[i].given ? GivenRival(entries_[i]) : nullptr;
    if (rival != nullptr) {
      Throw(ErrorKind::kInput, "{} and {} exclude each other", rival->long_names.front(),
            entries_[i].long_names.front());
    }
  }
}

void CommandLine::ReadEnvironment() {
  for (Entry& entry : entries_) {
    if (entry.given || &entry == Find("--help")) continue;
    for (const std::string& name : entry.long_names) {
      const std::string variable = VariableName(name);
      const char* value = std::getenv(variable.c_str());
      if (value == nullptr || *value == '\0' || GivenRival(entry) != nullptr) continue;
      TakeValue(entry, variable, value);
      break;
    }
  }
}

const CommandLine::Entry* CommandLine::GivenRival(const Entry& entry) {
  for (const auto& group : exclusive_) {
    if (!Contains(group, entry.long_names.front())) continue;
    for (const std::string& name : group) {
      const Entry* rival = Find(name);
      if (rival != &entry && rival->given) return rival;
    }
  }
  return nullptr;
}

void CommandLine::RefuseArgument(const std::string& argument) const {
  if (!argument.starts_with('-')) {
    Throw(ErrorKind::kInput, "unexpected argument {}; usage: godwit {} {}", Quote(argument), verb_,
          synopsis_);
  }
  const std::string name = argument.substr(0, argument.find('='));
  if (refuses_plot_ && name == "--plot") {
    Throw(ErrorKind::kInput,
          "--plot: pictures are drawn from JSON: godwit {} ... --json >r.json, then "
          "tools/plot r.json -o r.svg",
          verb_);
  }
  const auto nearest = Nearest(name, AllNames());
  Throw(ErrorKind::kInput, "unknown flag {}; {}", Quote(argument),
        nearest ? fmt::format("did you mean {}?", *nearest)
                : fmt::format("see godwit {} --help", verb_));
}

std::string CommandLine::Help() const {
  std::string text = fmt::format("Usage: godwit {} {}\n\n{}\n", verb_, synopsis_, Wrap(summary_));
  std::string_view group;
  for (const Entry& entry : entries_) {
    if (group != entry.group) text += fmt::format("\n{}\n", entry.group);
    group = entry.group;
    std::string names;
    for (const std::string& name : entry.short_names) names += name + ", ";
    for (const std::string& name : entry.long_names) names += name + ", ";
    names.resize(names.size() - 2);
    text += HelpEntry(entry.is_switch() ? names : names + " " + entry.flag.value, entry.flag.help);
  }
  return text + "\n" + Wrap(kEnvironmentHelp) + "\n\n" + Wrap(kExitCodes) + "\n";
}

}  // namespace godwit::cli
