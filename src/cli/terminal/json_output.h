// JSON results on standard output, and lines of .jsonl files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace godwit::cli {

// One line. Bytes that are no UTF-8, as the name of a folder may hold, are replaced.
std::string JsonLine(const nlohmann::ordered_json& json);

// Throws as WriteOutput does.
void WriteJson(const nlohmann::ordered_json& json);

}  // namespace godwit::cli
