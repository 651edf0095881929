// JSON and CSV: results on standard output, and lines of .jsonl files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace godwit::console {

// One line. Bytes that are no UTF-8, as the name of a folder may hold, are replaced.
std::string JsonLine(const nlohmann::ordered_json& json);

// On several lines.
std::string JsonText(const nlohmann::ordered_json& json);

// Of a list of objects with the same keys: a line for each, under one of names. What is an object
// in them has a column for each of its keys, "machine_isa".
std::string CsvText(const nlohmann::ordered_json& rows);

// Throws as WriteOutput does.
void WriteJson(const nlohmann::ordered_json& json);

}  // namespace godwit::console
