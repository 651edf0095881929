// Values of a request's fields, with their types checked.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace godwit::chat {

// Throws Error(kInput) that quotes nothing of the value.
[[noreturn]] void Refuse(std::string_view expected, const nlohmann::ordered_json& found);
// Throws as Refuse does, with the field's name first.
[[noreturn]] void RefuseField(std::string_view field, std::string_view expected,
                              const nlohmann::ordered_json& found);

// Text and Bool return the value, or call Refuse for a value of another type.
const std::string& Text(const nlohmann::ordered_json& value);
bool Bool(const nlohmann::ordered_json& value);

}  // namespace godwit::chat
