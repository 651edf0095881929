// godwit-lab, the program with the verbs that measure and make models. It replaces godwit in the
// same process, and so keeps its input, output, signals and exit code.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace godwit::cli {

// Whether an argument of godwit asks for help, as in `godwit help bench`.
bool AsksForHelp(const std::string& argument);

// The path of godwit-lab: beside the running program, as in a build folder, or where it is
// installed.
std::filesystem::path LabProgram();

// Whether the arguments of godwit are for the lab: they begin with a verb of the lab, or ask for
// the help of one.
bool IsForLab(std::span<const std::string> arguments);

// Whether the arguments need the lab at all. For the script ./godwit, which then builds it first:
// `godwit --needs-lab ARGUMENTS` exits with 0, or with 1.
bool NeedsLab(std::span<const std::string> arguments);

// Becomes godwit-lab. Throws Error(kUnsupported) if it was not built, Error(kIo) if it cannot be
// started.
[[noreturn]] void ExecLab(std::span<const std::string> arguments);

}  // namespace godwit::cli
