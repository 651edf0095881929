#include "hub/environment.h"

#include <cstdlib>

#include "base/ascii.h"

namespace godwit::hub {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsSet(const char* name) {
  const std::string value = Lower(Variable(name));
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

}  // namespace godwit::hub
