// Removal of tokens that may not come next.
#pragma once

#include <cstdint>
#include <span>

namespace godwit {

// Makes -inf of the logits [vocab] of tokens whose bit is not set: the lowest of the first word is
// that of token 0. Tokens beyond the words may not come either.
void AllowOnly(std::span<const uint32_t> allowed, std::span<float> logits);

}  // namespace godwit
