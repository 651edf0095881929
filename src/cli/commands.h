// The verbs of godwit that are not godwit-lab's. Each has a file of its own.
#pragma once

#include <span>
#include <string>

namespace godwit::cli {

// As console::Command has it.
int Run(std::span<const std::string> arguments);
int Chat(std::span<const std::string> arguments);
int Batch(std::span<const std::string> arguments);
int Pull(std::span<const std::string> arguments);
int Serve(std::span<const std::string> arguments);
int Cache(std::span<const std::string> arguments);
int Tokenize(std::span<const std::string> arguments);
int Pack(std::span<const std::string> arguments);
int Inspect(std::span<const std::string> arguments);

// Finds the verb in the arguments of the program and runs it; --help and --version are answered
// here.
int RunVerb(std::span<const std::string> arguments);

}  // namespace godwit::cli
