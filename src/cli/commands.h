// The verbs of godwit itself, without godwit-lab's. Each has a file of its own.
#pragma once

#include <span>
#include <string>

namespace godwit::cli {

// Functions as in console::Command.
int Run(std::span<const std::string> arguments);
int Plan(std::span<const std::string> arguments);
int Chat(std::span<const std::string> arguments);
int Batch(std::span<const std::string> arguments);
int Pull(std::span<const std::string> arguments);
int Serve(std::span<const std::string> arguments);
int Cache(std::span<const std::string> arguments);
int Tokenize(std::span<const std::string> arguments);
int Pack(std::span<const std::string> arguments);
int Inspect(std::span<const std::string> arguments);
int Doctor(std::span<const std::string> arguments);

// Finds the verb in the program's arguments and runs it. Answers --help and --version itself.
int RunVerb(std::span<const std::string> arguments);

}  // namespace godwit::cli
