#include "console/options/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/name_list.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "console/options/environment.h"
#include "console/options/foreign_flags.h"
#include "console/pages.h"
#include "console/terminal/output.h"

namespace godwit::console {
namespace {

bool Contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string_view BeforeColon(std::string_view text) { return text.substr(0, text.find(':')); }

// "; did you mean bf16?" if a value between commas is nearly one of the choices.
std::string MeantChoice(const std::vector<std::string>& choices, std::string_view value) {
  std::vector<std::string> names;
  for (const std::string& choice : choices) names.emplace_back(BeforeColon(choice));
  for (const std::string_view part : SplitAtCommas(value)) {
    const std::string_view name = BeforeColon(part);
    const auto nearest = Contains(names, name) ? std::nullopt : Nearest(name, names);
    if (nearest) return fmt::format("; did you mean {}?", *nearest);
  }
  return "";
}

[[noreturn]] void RefuseTwoValues(const std::string& name, const std::string& value,
                                  const std::string& other, const std::string& other_value) {
  constexpr size_t kShownBytes = 40;
  Throw(ErrorKind::kInput,
        "{} {} and {} {} contradict each other: they are one flag, which takes one value", name,
        Quote(value, kShownBytes), other, Quote(other_value, kShownBytes));
}

std::string ValueOf(const GivenFlag& flag) { return flag.value.value_or("1"); }

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
  if (flag.fallback.empty()) flag.fallback = target;
  Add(std::move(flag), [&target](const std::string& value) { target = value; });
}

void CommandLine::Add(Flag flag, std::optional<std::string>& target) {
  Add(std::move(flag), [&target](const std::string& value) { target = value; });
}

void CommandLine::Add(Flag flag, std::vector<std::string>& target) {
  flag.repeats = true;
  Add(std::move(flag), [&target](const std::string& value) { target.push_back(value); });
}

void CommandLine::Add(Flag flag, float& target) {
  if (flag.fallback.empty()) flag.fallback = fmt::format("{}", target);
  Add(std::move(flag), [&target](const std::string& value) { target = ParseFloat(value); });
}

void CommandLine::Add(Flag flag, bool& target) {
  Add(std::move(flag), [&target](const std::string& value) { target = ParseBool(value); });
}

void CommandLine::Operand(std::string& target) { operand_ = &target; }

void CommandLine::RefusePlot() { refuses_plot_ = true; }

void CommandLine::Exclusive(std::vector<std::string> long_names) {
  exclusive_.push_back(std::move(long_names));
}

void CommandLine::Needs(std::string long_name, std::vector<std::string> others) {
  needs_.emplace_back(std::move(long_name), std::move(others));
}

void CommandLine::Parse(std::span<const std::string> arguments) {
  if (Find("--help") == nullptr) {
    Group("Help");
    Add({.names = "-q,--quiet",
         .value = "",
         .help = "print only the result, errors, and notices of dropped text"},
        quiet_);
    Add({.names = "-h,--help", .value = "", .help = "show this help"}, help_);
  }
  for (Entry& entry : entries_) entry.given.clear();
  given_operand_.reset();
  const auto flags = SplitArguments(
      arguments,
      [this](std::string_view name) {
        const Entry* entry = Find(name);
        return entry == nullptr         ? FlagKind::kUnknown
               : entry->is_switch()     ? FlagKind::kSwitch
               : entry->flag.takes_list ? FlagKind::kWithValues
                                        : FlagKind::kWithValue;
      },
      [this](const std::string& argument) { TakeOther(argument); });
  for (const GivenFlag& flag : flags) {
    if (Find(flag.name) == Find("--help")) throw HelpRequest{Page()};
  }
  for (const GivenFlag& flag : flags) {
    TakeValue(*Find(flag.name), flag.name, ValueOf(flag));
  }
  if (operand_ != nullptr) {
    if (!given_operand_) {
      Throw(ErrorKind::kInput, "an argument is missing; usage: godwit {} {}", verb_, synopsis_);
    }
    *operand_ = *given_operand_;
  }
  RefuseContradictions(flags);
  for (const Entry& entry : entries_) {
    const Entry* rival = entry.given.empty() ? nullptr : GivenRival(entry);
    if (rival != nullptr) {
      Throw(ErrorKind::kInput, "{} and {} exclude each other", entry.given, rival->given);
    }
  }
  ReadEnvironment();
  RefuseUseless();
  if (quiet_) SilenceNotices();
  const auto given = GivenVariables();
  if (!DescribeUnknownVariables(given, PagesOfThisProgram()).empty()) {
    // Only a warning: a variable for another verb may be set for all of a shell's commands.
    for (const std::string& sentence : DescribeUnknownVariables(given, AllPages())) {
      WriteNotice("godwit: warning: " + sentence + "\n");
    }
  }
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

void CommandLine::TakeOther(const std::string& argument) {
  if (operand_ == nullptr || given_operand_ || argument.starts_with('-')) RefuseArgument(argument);
  given_operand_ = argument;
}

void CommandLine::TakeValue(Entry& entry, const std::string& name, const std::string& value) {
  try {
    entry.take(value);
  } catch (const Error& error) {
    Throw(error.kind(), "{}: {}{}", name, error.what(), MeantChoice(entry.flag.choices, value));
  }
  entry.given = name;
}

void CommandLine::ReadEnvironment() {
  for (Entry& entry : entries_) {
    if (!entry.given.empty() || &entry == Find("--help")) continue;
    std::string taken;  // two variables may name one flag
    for (const std::string& name : entry.long_names) {
      const std::string variable = VariableName(name, entry.flag.is_verbs_own ? verb_ : "");
      const char* value = std::getenv(variable.c_str());
      if (value == nullptr || *value == '\0' || GivenRival(entry) != nullptr) continue;
      if (entry.given.empty()) {
        TakeValue(entry, variable, value);
        taken = value;
      } else if (taken != value) {
        RefuseTwoValues(entry.given, taken, variable, value);
      }
    }
  }
}

void CommandLine::RefuseContradictions(std::span<const GivenFlag> flags) {
  std::map<const Entry*, const GivenFlag*> first;
  for (const GivenFlag& flag : flags) {
    const Entry* const entry = Find(flag.name);
    const auto [before, is_first] = first.emplace(entry, &flag);
    if (is_first || entry->flag.repeats) continue;
    const std::string value = ValueOf(flag), other = ValueOf(*before->second);
    const bool same = entry->is_switch() ? ParseBool(value) == ParseBool(other) : value == other;
    if (!same) RefuseTwoValues(before->second->name, other, flag.name, value);
  }
}

void CommandLine::RefuseUseless() {
  for (const auto& [name, others] : needs_) {
    const std::string& given = Find(name)->given;
    const bool has_use = std::ranges::any_of(
        others, [this](const std::string& other) { return !Find(other)->given.empty(); });
    if (!given.starts_with('-') || has_use) continue;
    Throw(ErrorKind::kInput, "{} has no effect without {}", given,
          NameList(others, std::identity(), " or "));
  }
}

const CommandLine::Entry* CommandLine::GivenRival(const Entry& entry) {
  for (const auto& group : exclusive_) {
    if (!Contains(group, entry.long_names.front())) continue;
    for (const std::string& name : group) {
      const Entry* rival = Find(name);
      if (rival != &entry && !rival->given.empty()) return rival;
    }
  }
  return nullptr;
}

void CommandLine::RefuseArgument(const std::string& argument) {
  if (!argument.starts_with('-') || argument == "-" || argument == "--") {
    Throw(ErrorKind::kInput, "unexpected argument {}; usage: godwit {} {}", Quote(argument), verb_,
          synopsis_);
  }
  const std::string name = argument.substr(0, argument.find('='));
  if (refuses_plot_ && name == "--plot") {
    Throw(ErrorKind::kInput,
          "--plot: there is no such flag; draw a picture of the JSON output: godwit {} ... --json "
          ">r.json, then tools/plot r.json -o r.svg",
          verb_);
  }
  const auto about =
      AboutForeignFlag(name, [this](std::string_view ours) { return Find(ours) != nullptr; });
  if (about) Throw(ErrorKind::kInput, "there is no {}: {}", Quote(name), *about);
  const auto nearest = Nearest(name, AllNames());
  Throw(ErrorKind::kInput, "unknown flag {}; {}", Quote(argument),
        nearest ? fmt::format("did you mean {}?", *nearest)
                : fmt::format("see godwit {} --help", verb_));
}

CommandPage CommandLine::Page() const {
  CommandPage page{.name = verb_, .synopsis = synopsis_, .summary = summary_};
  for (const Entry& entry : entries_) {
    page.flags.push_back({.group = entry.group,
                          .names = entry.short_names,
                          .value = entry.flag.value,
                          .help = entry.flag.help,
                          .fallback = entry.flag.fallback,
                          .choices = entry.flag.choices,
                          .is_verbs_own = entry.flag.is_verbs_own,
                          .takes_list = entry.flag.takes_list});
    auto& names = page.flags.back().names;
    names.insert(names.end(), entry.long_names.begin(), entry.long_names.end());
  }
  return page;
}

}  // namespace godwit::console
