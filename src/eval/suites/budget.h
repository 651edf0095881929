// The budget of a sample: the tokens of prompt and answer together.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace godwit::eval {

// The rest of `length_tokens` beside `taken_tokens`. Throws Error(kInput) if nothing is left.
int64_t RemainingTokens(int64_t length_tokens, int64_t taken_tokens);

// The prompt that `build` makes with as much text as fits beside `taken_tokens`, the answer's
// max_new_tokens among them. A piece joined with the next may take a token more than both apart.
// The prompt is then built again with less text, until it fits.
std::vector<int32_t> BuildToFit(
    int64_t length_tokens, int64_t taken_tokens, int64_t max_new_tokens,
    const std::function<std::vector<int32_t>(int64_t free_tokens)>& build);

}  // namespace godwit::eval
