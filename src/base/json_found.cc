#include "base/json_found.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/quote.h"

namespace godwit {

std::string Found(const nlohmann::json& value) {
  if (value.is_string()) return Quote(value.get_ref<const std::string&>());
  if (value.is_array()) return fmt::format("a list of {} values", value.size());
  if (value.is_object()) return fmt::format("an object of {} keys", value.size());
  return value.dump();
}

}  // namespace godwit
