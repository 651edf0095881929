// What godwit can be told to do, in one list. `godwit` has the verbs that people use every day;
// those that measure and make models are godwit-lab's, which godwit becomes for them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace godwit::console {

struct Verb {
  std::string_view name;
  std::string_view summary;
  bool over_ranks = false;  // that mpirun has started
  bool in_lab = false;
};

std::span<const Verb> AllVerbs();
// Those behind `eval`, all in the lab.
std::span<const Verb> AllEvaluations();

// Null where there is none.
const Verb* FindVerb(std::string_view name);

// How the running program does a verb: with the arguments behind its name. Its result goes to
// standard output, and it returns the exit code. Of what goes wrong it throws Error, or ClosedPipe
// (terminal/output.h); and HelpRequest (options/command_line.h), before anything is done.
struct Command {
  std::string_view name;  // "eval tasks"
  int (*run)(std::span<const std::string> arguments);
};

// Does it, or prints its help.
int RunCommand(const Command& command, std::span<const std::string> arguments);

int Completions(std::span<const std::string> arguments);
int Man(std::span<const std::string> arguments);

}  // namespace godwit::console
