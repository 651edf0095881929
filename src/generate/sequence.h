// Sequence: one text in the making: its tokens, its cache, and the means to continue it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "attention/core/text_cache.h"
#include "sampling/sampler.h"

namespace godwit {

struct Sequence {
  std::vector<int32_t> tokens;       // the prompt, then the output
  std::unique_ptr<TextCache> cache;  // has seen the first cache->length() tokens
  Sampler sampler;
  uint64_t id = 0;  // tells apart the draws of several answers to one prompt
  // Sets the logits [vocab] of tokens that may not be next to -inf; may be null.
  std::function<void(std::span<const int32_t> tokens, std::span<float> logits)> restrict_to = {};

  // Tokens that the model has yet to read.
  int64_t pending() const { return static_cast<int64_t>(tokens.size()) - cache->length(); }
  // The pending tokens up to the place where a rank skips what others keep.
  int64_t next() const { return std::min(pending(), cache->MaxNextTokens()); }
  // The next tokens in a step of at most so many, unless they come together.
  int64_t NextOf(int64_t most) const {
    return cache->AllRanksReadNext() ? next() : std::min(most, next());
  }
};

}  // namespace godwit
