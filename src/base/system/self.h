// The running program.
#pragma once

#include <filesystem>

namespace godwit {

// The program's file; empty if the system does not say.
std::filesystem::path ThisProgram();

}  // namespace godwit
