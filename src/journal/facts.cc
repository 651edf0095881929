#include "journal/facts.h"

namespace godwit::journal {

nlohmann::ordered_json JsonOf(const Facts& facts) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : facts) json[name] = value;
  return json;
}

Facts FactsOf(const nlohmann::ordered_json& json) {
  Facts facts;
  for (const auto& [name, value] : json.items()) {
    facts.emplace_back(name, value.get<std::string>());
  }
  return facts;
}

}  // namespace godwit::journal
