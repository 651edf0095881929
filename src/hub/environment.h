// Environment variables, as huggingface_hub takes them.
#pragma once

#include <string>

namespace godwit::hub {

// Empty where there is none.
std::string Variable(const char* name);

// Whether it says yes: 1, ON, YES or TRUE, in whatever letters.
bool IsSet(const char* name);

}  // namespace godwit::hub
