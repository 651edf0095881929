#include "cli/terminal/json_output.h"

#include <nlohmann/json.hpp>

#include "cli/terminal/output.h"

namespace godwit::cli {

std::string JsonLine(const nlohmann::ordered_json& json) {
  using OnInvalid = nlohmann::ordered_json::error_handler_t;
  return json.dump(-1, ' ', /*ensure_ascii=*/false, OnInvalid::replace) + "\n";
}

void WriteJson(const nlohmann::ordered_json& json) { WriteOutput(JsonLine(json)); }

}  // namespace godwit::cli
