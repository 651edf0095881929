// Values of the fields of a request, of the type that they have to be of.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace godwit::chat {

// Throws Error(kInput), which quotes nothing of what was found.
[[noreturn]] void Refuse(std::string_view expected, const nlohmann::ordered_json& found);
// Likewise, with the field's name first.
[[noreturn]] void RefuseField(std::string_view field, std::string_view expected,
                              const nlohmann::ordered_json& found);

// These throw it for another type.
const std::string& Text(const nlohmann::ordered_json& value);
bool Bool(const nlohmann::ordered_json& value);

}  // namespace godwit::chat
