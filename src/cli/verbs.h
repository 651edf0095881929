// What godwit can be told to do. Each verb has a file of its own; all_verbs.cc lists them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command_page.h"

namespace godwit::cli {

// Each takes the arguments behind its name, prints its result to standard output and returns the
// exit code. What goes wrong is thrown: Error, or ClosedPipe (terminal/output.h); so is HelpRequest
// (options/command_line.h), before anything is done.
int Run(std::span<const std::string> arguments);
int Chat(std::span<const std::string> arguments);
int Batch(std::span<const std::string> arguments);
int Serve(std::span<const std::string> arguments);
int Cache(std::span<const std::string> arguments);
int Tokenize(std::span<const std::string> arguments);
int Logits(std::span<const std::string> arguments);
int Perplexity(std::span<const std::string> arguments);
int Eval(std::span<const std::string> arguments);
int Bench(std::span<const std::string> arguments);
int Pack(std::span<const std::string> arguments);
int Quantize(std::span<const std::string> arguments);
int TrainHeads(std::span<const std::string> arguments);
int Inspect(std::span<const std::string> arguments);
int Completions(std::span<const std::string> arguments);
int Man(std::span<const std::string> arguments);

// What stands behind `eval`.
int EvalTasks(std::span<const std::string> arguments);
int EvalStream(std::span<const std::string> arguments);
int EvalQuant(std::span<const std::string> arguments);
int EvalText(std::span<const std::string> arguments);
int EvalRecall(std::span<const std::string> arguments);
int EvalPasskey(std::span<const std::string> arguments);
int EvalNeedle(std::span<const std::string> arguments);
int EvalKvRetrieval(std::span<const std::string> arguments);
int EvalLines(std::span<const std::string> arguments);
int EvalBabilong(std::span<const std::string> arguments);
int EvalRuler(std::span<const std::string> arguments);

struct Verb {
  std::string_view name;
  std::string_view summary;
  int (*run)(std::span<const std::string> arguments);
  bool over_ranks = false;  // that mpirun has started
};

std::span<const Verb> AllVerbs();
std::span<const Verb> AllEvaluations();

// Of every verb and, in place of `eval`, of every evaluation, as they stand in the lists.
std::vector<CommandPage> AllPages();

// Finds the verb in the arguments of the program and runs it; --help and --version are answered
// here.
int RunVerb(std::span<const std::string> arguments);

}  // namespace godwit::cli
