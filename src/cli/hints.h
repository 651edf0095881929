// Advice on flags for errors of the library, which knows no flag.
#pragma once

#include <string>

#include "godwit/error.h"

namespace godwit::cli {

// The message, followed by the flag that helps.
std::string WithHint(const Error& error);

}  // namespace godwit::cli
