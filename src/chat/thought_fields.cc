#include "chat/thought_fields.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace godwit::chat {

std::string ThoughtFields(const std::string& thought) {
  if (thought.empty()) return "";
  return DumpJson(nlohmann::ordered_json{{"reasoning_content", thought}, {"thinking", thought}});
}

std::string ThoughtIn(const std::string& fields) {
  if (fields.empty()) return "";
  return ParseOrderedJson(fields, "a message").value("reasoning_content", "");
}

}  // namespace godwit::chat
