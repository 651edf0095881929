// The tokens in front of a text that is scored.
#pragma once

#include <cstdint>
#include <vector>

#include "godwit/engine.h"

namespace godwit::eval {

// The tokens that the model's tokenizer puts in front of every text: a BOS, for most. A sink token
// is left out, since a session adds it by itself. A model trained with one is then scored on the
// same tokens as the same model without. Throws Error(kUnsupported) without a tokenizer.
std::vector<int32_t> ScoredLeadingTokens(const Engine& engine);

}  // namespace godwit::eval
