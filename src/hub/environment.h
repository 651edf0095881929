// Environment variables, read as huggingface_hub reads them.
#pragma once

#include <string>

namespace godwit::hub {

// The value of a variable; empty where it is not set.
std::string Variable(const char* name);

// Whether the value means yes: 1, ON, YES or TRUE, in letters of any case.
bool IsSet(const char* name);

}  // namespace godwit::hub
