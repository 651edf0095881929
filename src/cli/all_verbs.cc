#include <optional>
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

constexpr Verb kVerbs[] = {
    {"run", "continue a text", Run},
    {"chat", "talk with a chat model in the terminal", Chat},
    {"tokenize", "text to token ids, and back", Tokenize},
    {"logits", "write the logits of every position to an .npy file", Logits},
    {"perplexity", "how well a model predicts a text", Perplexity},
    {"eval", "how good a model is: zero-shot tasks, endless texts", Eval},
    {"bench", "how fast it is, against what the machine could do", Bench},
    {"quantize", "make an int8 model (SmoothQuant)", Quantize},
    {"inspect", "what a model is, and what of it fits into this machine", Inspect},
};

const Verb* FindVerb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

std::string Help() {
  std::string text = "godwit " GODWIT_VERSION
                     ": long texts through language models, on a fixed budget of memory\n\n"
                     "Usage: godwit VERB [flags]\n\n";
  for (const Verb& verb : kVerbs) text += HelpEntry(verb.name, verb.summary);
  return text + fmt::format(
                    "\n{}\n\n{}\n\nExamples:\n"
                    "  godwit run -m MODEL_FOLDER -p \"Once upon a time\" -n 100\n"
                    "  godwit run -m MODEL_FOLDER --chat -f question.txt --temp 0 --json\n"
                    "  godwit chat -m MODEL_FOLDER --kv sinks:4+2044\n",
                    Wrap(fmt::format("godwit VERB --help shows the flags of a verb. {}",
                                     kEnvironmentHelp)),
                    Wrap(kExitCodes));
}

[[noreturn]] void RefuseVerb(const std::string& name) {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  const auto nearest = Nearest(name, names);
  Throw(
      ErrorKind::kInput, "unknown {} {}; {}", name.starts_with('-') ? "flag" : "verb", Quote(name),
      nearest ? fmt::format("did you mean {}?", *nearest)
              : fmt::format("a verb comes first: {} (see godwit --help)", fmt::join(names, ", ")));
}

}  // namespace

std::span<const Verb> AllVerbs() { return kVerbs; }

int RunVerb(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    WriteStatus(Help());
    return ExitCode(ErrorKind::kInput);
  }
  const std::string& name = arguments.front();
  arguments = arguments.subspan(1);
  if (name == "--version") {
    WriteOutput("godwit " GODWIT_VERSION "\n");
    return kExitOk;
  }
  const bool help = name == "--help" || name == "-h" || name == "help";
  if (help && arguments.empty()) {
    WriteOutput(Help());
    return kExitOk;
  }
  const Verb* verb = FindVerb(help ? arguments.front() : name);
  if (verb == nullptr) RefuseVerb(help ? arguments.front() : name);
  const std::string help_flag = "--help";
  return verb->run(help ? std::span(&help_flag, 1) : arguments);
}

}  // namespace godwit::cli
