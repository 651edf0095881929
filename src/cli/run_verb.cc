#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/build_facts.h"
#include "cli/commands.h"
#include "cli/lab_program.h"
#include "cli/program.h"
#include "console/exit_code.h"
#include "console/options/help.h"
#include "console/pages.h"
#include "console/terminal/output.h"
#include "console/verbs.h"
#include "godwit/version.h"

namespace godwit::cli {
namespace {

std::string ProgramHelp() {
  const size_t columns = console::HelpColumns();
  std::string text =
      console::Wrap("godwit " GODWIT_VERSION
                    ": language models over long texts, with a fixed budget of memory",
                    columns) +
      "\n\nUsage: godwit VERB [flags]\n\n";
  for (const console::Verb& verb : console::AllVerbs()) {
    text += console::HelpEntry(verb.name, verb.summary, columns, console::kVerbColumn);
  }
  return text + fmt::format(
                    "\n{}\n\n{}\n\n{}\n\nExamples:\n"
                    "  godwit run -p \"Once upon a time\" -n 100\n"
                    "  godwit pull ORG/NAME-GGUF:Q4_K_M\n"
                    "  godwit run -m model.gguf --chat -f book.txt -p \"Who dies?\"\n"
                    "  godwit chat -m MODEL --kv sinks:4+2044\n",
                    console::Wrap(console::kModelHelp, columns),
                    console::Wrap(fmt::format("godwit VERB --help shows the flags of a verb. {}",
                                              console::kEnvironmentHelp),
                                  columns),
                    console::Wrap(console::kExitCodes, columns));
}

[[noreturn]] void RefuseVerb(const std::string& name) {
  std::vector<std::string> names;
  for (const console::Verb& verb : console::AllVerbs()) names.emplace_back(verb.name);
  const auto nearest = Nearest(name, names);
  Throw(ErrorKind::kInput, "unknown {} {}; {}", name.starts_with('-') ? "flag" : "verb",
        Quote(name),
        nearest ? fmt::format("did you mean {}?", *nearest)
                : fmt::format("a verb is missing: {} (see godwit --help)", fmt::join(names, ", ")));
}

}  // namespace

int RunVerb(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    console::WriteStatus(ProgramHelp());
    return console::ExitCode(ErrorKind::kInput);
  }
  const std::string& name = arguments.front();
  arguments = arguments.subspan(1);
  if (name == "--version") {
    console::WriteOutput(VersionText());
    return console::kExitOk;
  }
  if (name == console::kPagesRequest) {
    console::WriteOutput(console::PagesOfThisProgramJson());
    return console::kExitOk;
  }
  if (name == "--needs-lab") return NeedsLab(arguments) ? 0 : 1;
  const bool help = AsksForHelp(name);
  if (help && arguments.empty()) {
    console::WriteOutput(ProgramHelp());
    return console::kExitOk;
  }
  const console::Command* command = console::FindCommand(help ? arguments.front() : name);
  if (command == nullptr) RefuseVerb(help ? arguments.front() : name);
  // "help run" becomes "run --help".
  std::vector<std::string> rest(arguments.begin() + (help ? 1 : 0), arguments.end());
  if (help) rest.emplace_back("--help");
  if (!help) RefuseUselessRanks(name);
  return console::RunCommand(*command, rest);
}

}  // namespace godwit::cli
