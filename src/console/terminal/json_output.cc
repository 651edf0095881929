#include "console/terminal/json_output.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"
#include "console/terminal/output.h"

namespace godwit::console {

namespace {

using Json = nlohmann::ordered_json;

std::string CsvField(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : DumpJson(value);
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted(1, '"');
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  quoted.push_back('"');
  return quoted;
}

}  // namespace

std::string JsonLine(const Json& json) { return DumpJson(json) + "\n"; }

std::string JsonText(const Json& json) { return DumpJson(json, /*indent=*/2) + "\n"; }

std::string CsvText(const Json& rows) {
  std::string text;
  for (const Json& row : rows) {
    std::vector<std::string> names, values;
    for (const auto& [key, value] : row.items()) {
      if (!value.is_object()) {
        names.push_back(key);
        values.push_back(CsvField(value));
        continue;
      }
      for (const auto& [inner, field] : value.items()) {
        names.push_back(fmt::format("{}_{}", key, inner));
        values.push_back(CsvField(field));
      }
    }
    if (text.empty()) text = fmt::format("{}\n", fmt::join(names, ","));
    text += fmt::format("{}\n", fmt::join(values, ","));
  }
  return text;
}

void WriteJson(const Json& json) { WriteOutput(JsonLine(json)); }

}  // namespace godwit::console
