#include "chat/json_fields.h"

#include "base/error.h"
#include "base/json_found.h"
#include "base/quote.h"

namespace godwit::chat {

using Json = nlohmann::ordered_json;

void Refuse(std::string_view expected, const Json& found) {
  Throw(ErrorKind::kInput, "expected {}, found {}", expected, FoundUnquoted(nlohmann::json(found)));
}

void RefuseField(std::string_view field, std::string_view expected, const Json& found) {
  Throw(ErrorKind::kInput, "{}: expected {}, found {}", Quote(field), expected,
        FoundUnquoted(nlohmann::json(found)));
}

const std::string& Text(const Json& value) {
  if (!value.is_string()) Refuse("text", value);
  return value.get_ref<const std::string&>();
}

bool Bool(const Json& value) {
  if (!value.is_boolean()) Refuse("true or false", value);
  return value.get<bool>();
}

}  // namespace godwit::chat
