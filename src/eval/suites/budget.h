// What a sample may take: so many tokens for prompt and answer together.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace godwit::eval {

// What is left of `length_tokens` beside `taken_tokens`. Throws Error(kInput) if that is nothing.
int64_t RoomIn(int64_t length_tokens, int64_t taken_tokens);

// The prompt that `build` makes with as much text as there is room for beside `taken_tokens`, the
// answer's max_new_tokens among them. Joining a piece with what follows may take a token more than
// both by themselves: it is built again, with less, until it fits.
std::vector<int32_t> BuildToFit(
    int64_t length_tokens, int64_t taken_tokens, int64_t max_new_tokens,
    const std::function<std::vector<int32_t>(int64_t room_tokens)>& build);

}  // namespace godwit::eval
