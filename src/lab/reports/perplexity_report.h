// The report of `godwit perplexity`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "eval/perplexity.h"

namespace godwit::lab {

// The perplexity as text. A model that fails has perplexities of any size.
std::string FormatPerplexity(double perplexity);

// One run: its figures and a table of positions.
std::string PerplexityText(const eval::PerplexityResult& result);
nlohmann::ordered_json PerplexityJson(const eval::PerplexityResult& result,
                                      const eval::PerplexityOptions& options);

// Several runs over the same text: a line for each, and a table of positions with a column for
// each.
std::string ComparisonText(std::span<const eval::PerplexityResult> results);

}  // namespace godwit::lab
