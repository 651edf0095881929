// Fields of requests that clients may send, but that support only certain values. Another value
// would promise a behaviour that does not exist.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

namespace godwit::chat {

struct FixedField {
  std::string_view name;
  const char* values;  // a JSON list of the values that a request may name
  const char* why;     // the reason for having no others
};

// The fixed fields of chats and text completions.
std::span<const FixedField> FixedFields();

// Whether `name` is one of the fields and its value is allowed: one of the list, null, or any value
// if lenient. Throws Error(kInput), which quotes nothing of a text, for another value.
bool IsFixed(std::span<const FixedField> fields, std::string_view name,
             const nlohmann::ordered_json& value, bool lenient);

}  // namespace godwit::chat
