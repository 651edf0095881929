// godwit-lab, the program with the verbs that measure and make models. It takes the place of godwit
// in the same process, so that input, output, signals and the exit code are those of one program.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace godwit::cli {

// Whether an argument of godwit asks for help, as in `godwit help bench`.
bool AsksForHelp(const std::string& argument);

// Beside the running program, as in a build folder, or else where it is installed.
std::filesystem::path LabProgram();

// Whether the arguments of godwit are for the lab: they begin with a verb of its own, or ask for
// the help of one.
bool IsForLab(std::span<const std::string> arguments);

// Whether the lab has a part in what they ask for. For the script ./godwit, which then builds it
// first: `godwit --needs-lab ARGUMENTS` exits with 0, or with 1.
bool NeedsLab(std::span<const std::string> arguments);

// Goes on as godwit-lab. Throws Error(kUnsupported) where it was not built, Error(kIo) where it
// cannot be started.
[[noreturn]] void BecomeLab(std::span<const std::string> arguments);

}  // namespace godwit::cli
