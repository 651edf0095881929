#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/exit_code.h"
#include "cli/options/command_line.h"
#include "cli/options/help.h"
#include "cli/terminal/output.h"
#include "cli/verbs.h"
#include "dist/mpi.h"
#include "godwit/version.h"

namespace godwit::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"run", "continue a text", Run, /*over_ranks=*/true},
    {"chat", "talk with a chat model in the terminal", Chat},
    {"batch", "answer a file of requests", Batch, /*over_ranks=*/true},
    {"serve", "answer requests over HTTP, in the shape of OpenAI's API", Serve},
    {"cache", "what was saved of texts, for later runs to go on from", Cache},
    {"tokenize", "text to token ids, and back", Tokenize},
    {"logits", "write the logits of every position to an .npy file", Logits},
    {"perplexity", "how well a model predicts a text", Perplexity, /*over_ranks=*/true},
    {"eval", "how good a model is: tasks, endless texts, quantization", Eval},
    {"bench", "how fast it is, against what the machine could do", Bench, /*over_ranks=*/true},
    {"pack", "a packed copy of a model, which starts at once", Pack},
    {"quantize", "make an int8 model (SmoothQuant)", Quantize},
    {"train-heads", "train heads that guess tokens for --draft heads", TrainHeads},
    {"inspect", "what a model is, and what of it fits into this machine", Inspect},
    {"completions", "a script for bash, zsh or fish to complete flags with Tab", Completions},
    {"man", "all of this help as a page for man", Man},
};

const Verb* FindVerb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

std::string Help() {
  const size_t columns = HelpColumns();
  std::string text = Wrap("godwit " GODWIT_VERSION
                          ": long texts through language models, on a fixed budget of memory",
                          columns) +
                     "\n\nUsage: godwit VERB [flags]\n\n";
  for (const Verb& verb : kVerbs) text += HelpEntry(verb.name, verb.summary, columns, kVerbColumn);
  return text +
         fmt::format(
             "\n{}\n\n{}\n\nExamples:\n"
             "  godwit run -p \"Once upon a time\" -n 100\n"
             "  godwit run -m MODEL --chat -f question.txt --temp 0\n"
             "  godwit chat -m MODEL --kv sinks:4+2044\n",
             Wrap(fmt::format("godwit VERB --help shows the flags of a verb. {}", kEnvironmentHelp),
                  columns),
             Wrap(kExitCodes, columns));
}

CommandPage PageOf(const Verb& verb) {
  const std::string help = "--help";
  try {
    verb.run(std::span(&help, 1));
  } catch (HelpRequest& request) {
    return std::move(request.page);
  }
  Throw(ErrorKind::kInput, "{} has no page", verb.name);
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

[[noreturn]] void RefuseRanks(const Verb& verb) {
  std::vector<std::string_view> others;
  for (const Verb& one : kVerbs) {
    if (one.over_ranks) others.push_back(one.name);
  }
  Throw(ErrorKind::kUnsupported, "{} ranks were started, which godwit {} makes no use of; {} do",
        MpiSize(), verb.name, fmt::join(others, ", "));
}

}  // namespace

std::span<const Verb> AllVerbs() { return kVerbs; }

std::vector<CommandPage> AllPages() {
  std::vector<CommandPage> pages;
  for (const Verb& verb : kVerbs) {
    for (const Verb& one : verb.run == Eval ? AllEvaluations() : std::span(&verb, 1)) {
      pages.push_back(PageOf(one));
    }
  }
  return pages;
}

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
  // "help eval tasks" is "eval tasks --help".
  std::vector<std::string> rest(arguments.begin() + (help ? 1 : 0), arguments.end());
  if (help) rest.emplace_back("--help");
  if (MpiSize() > 1 && !help && !verb->over_ranks) RefuseRanks(*verb);
  try {
    return verb->run(rest);
  } catch (const HelpRequest& request) {
    WriteOutput(HelpText(request.page, HelpColumns()));
    return kExitOk;
  }
}

}  // namespace godwit::cli
