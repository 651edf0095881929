// Fields of requests that have one value here, which clients may well say: another value would
// promise something that is not done.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

namespace godwit::chat {

struct FixedField {
  std::string_view name;
  const char* values;  // a list in JSON: those that a request may say
  const char* why;     // there are no others
};

// Of chats and texts.
std::span<const FixedField> FixedFields();

// Whether `name` is one of them, with a value that it may have, with null, or with any if lenient.
// Throws Error(kInput), which quotes nothing of a text, for another one.
bool IsFixed(std::span<const FixedField> fields, std::string_view name,
             const nlohmann::ordered_json& value, bool lenient);

}  // namespace godwit::chat
