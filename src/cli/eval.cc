// godwit eval: how good a model is, measured in the way that the name behind it says.

#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/exit_code.h"
#include "cli/options/help.h"
#include "cli/terminal/output.h"
#include "cli/verbs.h"

namespace godwit::cli {
namespace {

constexpr Verb kEvaluations[] = {
    {"tasks", "questions with a known answer: ARC, BoolQ, COPA, LAMBADA, PIQA, ...", EvalTasks},
    {"stream", "questions about an endless text, while it goes on: StreamEval, ARC", EvalStream},
    {"passkey", "a number on one line of a long text that says nothing", EvalPasskey},
    {"needle", "one fact in a long text, at every length and depth", EvalNeedle},
    {"kv-retrieval", "the value of one key of a large JSON object", EvalKvRetrieval},
    {"lines", "the number on one of many lines with names: LongEval", EvalLines},
    {"babilong", "what follows from the facts of a story in a long text", EvalBabilong},
    {"ruler", "facts, variables and frequent words in a long text: RULER", EvalRuler},
    {"recall", "what a cache policy shows of the tokens that matter most", EvalRecall},
    {"quant", "what quantization costs, beside the float model: text and tasks", EvalQuant},
    {"text", "how much a text repeats itself, and what guesses of its tokens save", EvalText},
};

std::string Help() {
  const size_t columns = HelpColumns();
  std::string text =
      "Usage: godwit eval WHAT [flags]\n\nMeasures how good a model is. WHAT is one of:\n\n";
  for (const Verb& evaluation : kEvaluations) {
    text += HelpEntry(evaluation.name, evaluation.summary, columns, kVerbColumn);
  }
  return text + "\ngodwit eval WHAT --help shows its flags.\n\n" + Wrap(kExitCodes, columns) + "\n";
}

}  // namespace

std::span<const Verb> AllEvaluations() { return kEvaluations; }

int Eval(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    WriteStatus(Help());
    return ExitCode(ErrorKind::kInput);
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") {
    WriteOutput(Help());
    return kExitOk;
  }
  std::vector<std::string> names;
  for (const Verb& evaluation : kEvaluations) {
    if (evaluation.name == name) return evaluation.run(arguments.subspan(1));
    names.emplace_back(evaluation.name);
  }
  const auto nearest = Nearest(name, names);
  Throw(ErrorKind::kInput, "unknown evaluation {}; {}", Quote(name),
        nearest ? fmt::format("did you mean {}?", *nearest)
                : fmt::format("there are: {} (see godwit eval --help)", fmt::join(names, ", ")));
}

}  // namespace godwit::cli
