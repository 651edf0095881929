#include "console/verbs.h"

#include "console/exit_code.h"
#include "console/options/command_line.h"
#include "console/options/help.h"
#include "console/terminal/output.h"

namespace godwit::console {
namespace {

constexpr Verb kVerbs[] = {
    {"run", "continue a text", /*over_ranks=*/true},
    {"plan", "tell the time and memory of a run, before it"},
    {"chat", "talk with a chat model in the terminal"},
    {"batch", "answer a file of requests", /*over_ranks=*/true},
    {"serve", "answer requests over HTTP, in the shape of OpenAI's API", /*over_ranks=*/true},
    {"pull", "download a model from the Hugging Face hub"},
    {"cache", "list, verify, pin and remove saved texts"},
    {"tokenize", "turn text into token ids, and back"},
    {.name = "logits",
     .summary = "write the logits of every position to an .npy file",
     .in_lab = true},
    {.name = "perplexity",
     .summary = "measure how well a model predicts a text",
     .over_ranks = true,
     .in_lab = true},
    {.name = "eval",
     .summary = "measure quality: tasks, long and endless texts, quantization",
     .in_lab = true},
    {.name = "bench",
     .summary = "measure speed, beside the limits of the machine",
     .over_ranks = true,
     .in_lab = true},
    {.name = "probe",
     .summary = "test a server with OpenAI's API for common faults",
     .in_lab = true},
    {"pack", "write a packed copy of a model, which starts at once"},
    {.name = "quantize",
     .summary = "quantize a model to 8 or 4 bits (SmoothQuant, AWQ, GPTQ)",
     .in_lab = true},
    {.name = "train-heads", .summary = "train draft heads for --draft heads", .in_lab = true},
    {"inspect", "describe a model, and what fits into this machine"},
    {"doctor", "examine this machine: what would make godwit faster"},
    {"completions", "print a script that completes flags in bash, zsh or fish"},
    {"man", "print the whole help as a manual page"},
};

constexpr Verb kEvaluations[] = {
    {"tasks", "answer zero-shot tasks: ARC, BoolQ, COPA, LAMBADA, PIQA, ..."},
    {"stream", "answer questions within an endless text: StreamEval, ARC"},
    {"passkey", "find a number in a long text of filler sentences"},
    {"needle", "find one fact in a long text, at every length and depth"},
    {"kv-retrieval", "find the value of one key in a large JSON object"},
    {"lines", "find the number on one of many named lines: LongEval"},
    {"babilong", "draw conclusions from facts hidden in a long text"},
    {"ruler", "find facts, variables and frequent words in a long text: RULER"},
    {"passages", "find facts in passages that are read once for all prompts"},
    {"recall", "measure the share of the top tokens that a cache policy shows"},
    {"attention", "measure where the heads of a model look"},
    {"quant", "measure the loss by quantization, on a text and on tasks"},
    {"text", "measure the repetition of a text, and the gain by draft tokens"},
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
