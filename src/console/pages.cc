#include "console/pages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/system/descriptors.h"
#include "console/options/command_line.h"
#include "console/terminal/output.h"

namespace godwit::console {
namespace {

std::span<const Command> own_commands;
std::filesystem::path other_program;

CommandPage PageOf(const Command& command) {
  const std::string help = "--help";
  try {
    command.run(std::span(&help, 1));
  } catch (HelpRequest& request) {
    return std::move(request.page);
  }
  return {};
}

std::vector<std::string> PageNames() {
  std::vector<std::string> names;
  for (const Verb& verb : AllVerbs()) {
    if (verb.name != "eval") {
      names.emplace_back(verb.name);
      continue;
    }
    for (const Verb& evaluation : AllEvaluations()) {
      names.push_back(fmt::format("eval {}", evaluation.name));
    }
  }
  return names;
}

std::string PrintedBy(const std::filesystem::path& program, std::string argument) {
  int ends[2];
  if (!OpenPipe(ends, /*blocks=*/true)) return "";
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string name = program.native();
  char* const arguments[] = {name.data(), argument.data(), nullptr};
  pid_t pid = -1;
  const bool started = posix_spawn(&pid, name.c_str(), &files, nullptr, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t bytes = 1; started && bytes != 0;) {
    bytes = read(ends[0], part, sizeof(part));
    if (bytes > 0) text.append(part, static_cast<size_t>(bytes));
    if (bytes < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  int status = 0;
  while (started && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return text;
}

FlagPage FlagFrom(const nlohmann::json& json) {
  return {.group = json.at("group"),
          .names = json.at("names"),
          .value = json.at("value"),
          .help = json.at("help"),
          .fallback = json.at("fallback"),
          .choices = json.at("choices"),
          .is_verbs_own = json.at("is_verbs_own"),
          .takes_list = json.at("takes_list")};
}

// Pages of the other program. Empty: it is missing, or of another version.
std::vector<CommandPage> OtherPages() try {
  std::vector<CommandPage> pages;
  if (access(other_program.c_str(), X_OK) != 0) return pages;
  const std::string printed = PrintedBy(other_program, std::string(kPagesRequest));
  for (const nlohmann::json& json : nlohmann::json::parse(printed)) {
    pages.push_back(
        {.name = json.at("name"), .synopsis = json.at("synopsis"), .summary = json.at("summary")});
    for (const nlohmann::json& flag : json.at("flags")) {
      pages.back().flags.push_back(FlagFrom(flag));
    }
  }
  return pages;
} catch (const nlohmann::json::exception&) {
  return {};
}

}  // namespace

void SetProgram(std::span<const Command> commands, std::filesystem::path other) {
  own_commands = commands;
  other_program = std::move(other);
}

const Command* FindCommand(std::string_view name) {
  const auto found = std::ranges::find(own_commands, name, &Command::name);
  return found == own_commands.end() ? nullptr : &*found;
}

std::vector<CommandPage> PagesOfThisProgram() {
  std::vector<CommandPage> pages;
  for (const Command& command : own_commands) pages.push_back(PageOf(command));
  return pages;
}

std::string PagesOfThisProgramJson() {
  auto json = nlohmann::json::array();
  for (const CommandPage& page : PagesOfThisProgram()) {
    auto flags = nlohmann::json::array();
    for (const FlagPage& flag : page.flags) {
      flags.push_back({{"group", flag.group},
                       {"names", flag.names},
                       {"value", flag.value},
                       {"help", flag.help},
                       {"fallback", flag.fallback},
                       {"choices", flag.choices},
                       {"is_verbs_own", flag.is_verbs_own},
                       {"takes_list", flag.takes_list}});
    }
    json.push_back({{"name", page.name},
                    {"synopsis", page.synopsis},
                    {"summary", page.summary},
                    {"flags", flags}});
  }
  return json.dump();
}

std::vector<CommandPage> AllPages() {
  std::vector<CommandPage> pages, found = PagesOfThisProgram();
  std::ranges::move(OtherPages(), std::back_inserter(found));
  for (const std::string& name : PageNames()) {
    const auto page = std::ranges::find(found, name, &CommandPage::name);
    if (page != found.end()) pages.push_back(*page);
  }
  return pages;
}

std::vector<CommandPage> AllPagesOrWarn() {
  auto pages = AllPages();
  std::vector<std::string> missing;
  for (std::string& name : PageNames()) {
    if (std::ranges::find(pages, name, &CommandPage::name) == pages.end()) {
      missing.push_back(std::move(name));
    }
  }
  if (!missing.empty()) {
    WriteNotice(
        fmt::format("godwit: warning: the flags of {} are left out, because their program "
                    "godwit-lab is missing; {}\n",
                    fmt::join(missing, ", "), kHowToBuildTheLab));
  }
  return pages;
}

}  // namespace godwit::console
