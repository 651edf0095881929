// godwit eval: how good a model is. The next word names the measurement.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "console/exit_code.h"
#include "console/options/help.h"
#include "console/pages.h"
#include "console/terminal/output.h"
#include "console/verbs.h"
#include "lab/commands.h"

namespace godwit::lab {
namespace {

std::string EvalHelp() {
  const size_t columns = console::HelpColumns();
  std::string text =
      "Usage: godwit eval WHAT [flags]\n"
      "\n"
      "Measures the quality of a model. WHAT is one of:\n"
      "\n";
  for (const console::Verb& evaluation : console::AllEvaluations()) {
    text += console::HelpEntry(evaluation.name, evaluation.summary, columns, console::kVerbColumn);
  }
  return text + "\ngodwit eval WHAT --help shows its flags.\n\n" +
         console::Wrap(console::kExitCodes, columns) + "\n";
}

}  // namespace

int Eval(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    console::WriteStatus(EvalHelp());
    return console::ExitCode(ErrorKind::kInput);
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") {
    console::WriteOutput(EvalHelp());
    return console::kExitOk;
  }
  std::vector<std::string> names;
  for (const console::Verb& evaluation : console::AllEvaluations()) {
    if (evaluation.name == name) {
      return console::FindCommand(fmt::format("eval {}", name))->run(arguments.subspan(1));
    }
    names.emplace_back(evaluation.name);
  }
  const auto nearest = Nearest(name, names);
  Throw(ErrorKind::kInput, "unknown evaluation {}; {}", Quote(name),
        nearest ? fmt::format("did you mean {}?", *nearest)
                : fmt::format("there are: {} (see godwit eval --help)", fmt::join(names, ", ")));
}

}  // namespace godwit::lab
