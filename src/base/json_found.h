// What stands in a JSON document, for the "found ..." half of a message.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace godwit {

// One short line whatever the size of `value`: scalars as they are, long text cut, containers by
// their size.
std::string Found(const nlohmann::json& value);

// The same, but of text only its length: who reads the message may not be who wrote the text.
std::string FoundUnquoted(const nlohmann::json& value);

}  // namespace godwit
