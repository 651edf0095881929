// Facts of a run in a journal: what must be the same if an answer is to go on from its record.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace godwit::journal {

// Names and values, in their order.
using Facts = std::vector<std::pair<std::string, std::string>>;

// {"name": "value", ...}; a later value of a name replaces an earlier one.
nlohmann::ordered_json JsonOf(const Facts& facts);
// Throws what nlohmann::json throws for values that are no text.
Facts FactsOf(const nlohmann::ordered_json& json);

}  // namespace godwit::journal
