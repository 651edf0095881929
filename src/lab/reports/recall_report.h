// What policies show of the tokens that matter, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "attention/recall.h"

namespace godwit::lab {

// kvs: the specs of the policies, as they were given. Means over the tokens, layers and heads.
nlohmann::ordered_json RecallJson(std::span<const std::string> kvs,
                                  std::span<const Recall> recalls);
std::string RecallText(std::span<const std::string> kvs, std::span<const Recall> recalls);

}  // namespace godwit::lab
