// JSON and CSV: results on standard output, and lines of .jsonl files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace godwit::console {

// The JSON on one line. Bytes that are no UTF-8, as a folder's name may contain, are replaced.
std::string JsonLine(const nlohmann::ordered_json& json);

// The JSON on several lines.
std::string JsonText(const nlohmann::ordered_json& json);

// The CSV of a list of objects with the same keys: a line of names, then a line for each object. A
// nested object has a column for each of its keys, "machine_isa".
std::string CsvText(const nlohmann::ordered_json& rows);

// Writes JSON to standard output. Throws as WriteOutput does.
void WriteJson(const nlohmann::ordered_json& json);

}  // namespace godwit::console
