// The verbs of godwit, in one list. `godwit` has the everyday verbs. Verbs that measure or make
// models belong to godwit-lab, which godwit becomes for them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace godwit::console {

struct Verb {
  std::string_view name;
  std::string_view summary;
  bool over_ranks = false;  // may run over ranks that mpirun has started
  bool in_lab = false;
};

std::span<const Verb> AllVerbs();
// The verbs behind `eval`, all in the lab.
std::span<const Verb> AllEvaluations();

// The verb of this name. Null: there is none.
const Verb* FindVerb(std::string_view name);

// Command: the function of a verb in the running program, called with the arguments behind the
// name. The result goes to standard output, and the exit code is returned. Failures throw Error or
// ClosedPipe (terminal/output.h). HelpRequest (options/command_line.h) is thrown before anything is
// done.
struct Command {
  std::string_view name;  // "eval tasks"
  int (*run)(std::span<const std::string> arguments);
};

// Runs the command, or prints its help.
int RunCommand(const Command& command, std::span<const std::string> arguments);

int Completions(std::span<const std::string> arguments);
int Man(std::span<const std::string> arguments);

}  // namespace godwit::console
