// Penalties: logit bias, and penalties for repetition.
//
// Repetition penalty: Keskar et al. 2019, "CTRL", section 4.1, in the form that every engine uses.
// Positive logits are divided by it, negative ones multiplied, once per distinct token. Presence
// and frequency penalty are the OpenAI API's. Holds a counter per token of the vocabulary. A step
// thus costs time in proportion to the window, not to the vocabulary, and allocates nothing. One
// thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sampling/options.h"

namespace godwit {

class Penalties {
 public:
  // `options` must be valid for `vocab`.
  Penalties(const SamplerOptions& options, int32_t vocab);

  // Changes `logits` ([vocab] f32) in place: bias first, then the penalties of the tokens at the
  // end of `history`. Throws Error(kInput) for a token of the window that is not in the vocabulary
  // and for a logit that ends at +inf or NaN.
  void Apply(std::span<float> logits, std::span<const int32_t> history);

 private:
  std::vector<std::pair<int32_t, float>> bias_;
  int repeat_last_n_;
  float repeat_penalty_;
  float presence_penalty_;
  float frequency_penalty_;
  std::vector<int32_t> counts_;  // [vocab], all zero between calls
};

}  // namespace godwit
