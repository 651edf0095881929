#include "sampling/options.h"

#include <cmath>
#include <string_view>

#include "base/error.h"

namespace godwit {
namespace {

void Require(bool valid, std::string_view field, std::string_view expected, double found) {
  if (!valid) Throw(ErrorKind::kInput, "{} must be {}, not {}", field, expected, found);
}

// False for NaN, as every comparison with it is.
bool InRange(float value, float low, float high) { return value >= low && value <= high; }

}  // namespace

void Validate(const SamplerOptions& options, int32_t vocab) {
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < 0 || token >= vocab) {
      Throw(ErrorKind::kInput, "logit_bias names token {}, but the vocabulary is 0 to {}", token,
            vocab - 1);
    }
    if (std::isnan(bias) || (std::isinf(bias) && bias > 0)) {
      Throw(ErrorKind::kInput, "logit_bias of token {} must be a number or -inf, not {}", token,
            bias);
    }
  }
  Require(options.repeat_last_n >= -1, "repeat_last_n", "at least 0, or -1 for the whole text",
          options.repeat_last_n);
  Require(options.repeat_penalty > 0 && std::isfinite(options.repeat_penalty), "repeat_penalty",
          "a number greater than 0 (1 turns it off)", options.repeat_penalty);
  Require(std::isfinite(options.presence_penalty), "presence_penalty", "a finite number",
          options.presence_penalty);
  Require(std::isfinite(options.frequency_penalty), "frequency_penalty", "a finite number",
          options.frequency_penalty);
  Require(options.temperature >= 0 && std::isfinite(options.temperature), "temperature",
          "a number of at least 0 (0 is greedy)", options.temperature);
  Require(options.top_k >= 0, "top_k", "at least 0 (0 turns it off)", options.top_k);
  Require(InRange(options.top_p, 0, 1), "top_p", "between 0 and 1 (1 turns it off)", options.top_p);
  Require(InRange(options.min_p, 0, 1), "min_p", "between 0 and 1 (0 turns it off)", options.min_p);
  Require(InRange(options.eta, 0, 1), "eta", "between 0 and 1 (0 turns it off)", options.eta);
}

}  // namespace godwit
