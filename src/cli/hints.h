// What the flags of this program can do about an error of the library, which knows none of them.
#pragma once

#include <string>

#include "godwit/error.h"

namespace godwit::cli {

// The message, with what helps behind it.
std::string WithHint(const Error& error);

}  // namespace godwit::cli
