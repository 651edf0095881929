// What godwit can be told to do. Each verb has a file of its own; all_verbs.cc lists them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace godwit::cli {

// Each takes the arguments behind its name, prints its result to standard output and returns the
// exit code. What goes wrong is thrown: Error, or ClosedPipe (terminal/output.h).
int Run(std::span<const std::string> arguments);
int Chat(std::span<const std::string> arguments);
int Tokenize(std::span<const std::string> arguments);
int Logits(std::span<const std::string> arguments);
int Perplexity(std::span<const std::string> arguments);
int Eval(std::span<const std::string> arguments);
int Bench(std::span<const std::string> arguments);
int Quantize(std::span<const std::string> arguments);
int Inspect(std::span<const std::string> arguments);

// What stands behind `eval`; eval.cc lists them.
int EvalTasks(std::span<const std::string> arguments);
int EvalStream(std::span<const std::string> arguments);
int EvalQuant(std::span<const std::string> arguments);

struct Verb {
  std::string_view name;
  std::string_view summary;
  int (*run)(std::span<const std::string> arguments);
};

std::span<const Verb> AllVerbs();

// Finds the verb in the arguments of the program and runs it; --help and --version are answered
// here.
int RunVerb(std::span<const std::string> arguments);

}  // namespace godwit::cli
