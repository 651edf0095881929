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

std::string FoundUnquoted(const nlohmann::json& value) {
  if (!value.is_string()) return Found(value);
  return fmt::format("a text of {} bytes", value.get_ref<const std::string&>().size());
}

}  // namespace godwit
