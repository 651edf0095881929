#include "console/verbs.h"

#include "console/exit_code.h"
#include "console/options/command_line.h"
#include "console/options/help.h"
#include "console/terminal/output.h"

namespace godwit::console {
namespace {

constexpr Verb kVerbs[] = {
    {"run", "continue a text", /*over_ranks=*/true},
    {"chat", "talk with a chat model in the terminal"},
    {"batch", "answer a file of requests", /*over_ranks=*/true},
    {"serve", "answer requests over HTTP, in the shape of OpenAI's API"},
    {"pull", "download a model from the Hugging Face hub"},
    {"cache", "what was saved of texts, for later runs to go on from"},
    {"tokenize", "text to token ids, and back"},
    {.name = "logits",
     .summary = "write the logits of every position to an .npy file",
     .in_lab = true},
    {.name = "perplexity",
     .summary = "how well a model predicts a text",
     .over_ranks = true,
     .in_lab = true},
    {.name = "eval",
     .summary = "how good a model is: tasks, endless texts, quantization",
     .in_lab = true},
    {.name = "bench",
     .summary = "how fast it is, against what the machine could do",
     .over_ranks = true,
     .in_lab = true},
    {.name = "probe",
     .summary = "what faults a server with OpenAI's API has, by asking it",
     .in_lab = true},
    {"pack", "a packed copy of a model, which starts at once"},
    {.name = "quantize",
     .summary = "make a model of 8 or 4 bits (SmoothQuant, AWQ, GPTQ)",
     .in_lab = true},
    {.name = "train-heads",
     .summary = "train heads that guess tokens for --draft heads",
     .in_lab = true},
    {"inspect", "what a model is, and what of it fits into this machine"},
    {"completions", "a script for bash, zsh or fish to complete flags with Tab"},
    {"man", "all of this help as a page for man"},
};

constexpr Verb kEvaluations[] = {
    {"tasks", "questions with a known answer: ARC, BoolQ, COPA, LAMBADA, PIQA, ..."},
    {"stream", "questions about an endless text, while it goes on: StreamEval, ARC"},
    {"passkey", "a number on one line of a long text that says nothing"},
    {"needle", "one fact in a long text, at every length and depth"},
    {"kv-retrieval", "the value of one key of a large JSON object"},
    {"lines", "the number on one of many lines with names: LongEval"},
    {"babilong", "what follows from the facts of a story in a long text"},
    {"ruler", "facts, variables and frequent words in a long text: RULER"},
    {"recall", "what a cache policy shows of the tokens that matter most"},
    {"quant", "what quantization costs, beside the float model: text and tasks"},
    {"text", "how much a text repeats itself, and what guesses of its tokens save"},
};

}  // namespace

std::span<const Verb> AllVerbs() { return kVerbs; }
std::span<const Verb> AllEvaluations() { return kEvaluations; }

const Verb* FindVerb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

int RunCommand(const Command& command, std::span<const std::string> arguments) {
  try {
    return command.run(arguments);
  } catch (const HelpRequest& request) {
    WriteOutput(HelpText(request.page, HelpColumns()));
    return kExitOk;
  }
}

}  // namespace godwit::console
