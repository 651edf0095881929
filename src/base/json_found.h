// Descriptions of JSON values, for the "found ..." half of a message.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace godwit {

// One short line whatever the size of `value`: scalars as they are, long text cut, containers by
// their size.
std::string Found(const nlohmann::json& value);

// Describes a value, but only the length of text: the reader of the message may not be its writer.
std::string FoundUnquoted(const nlohmann::json& value);

}  // namespace godwit
