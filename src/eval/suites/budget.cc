#include "eval/suites/budget.h"

#include <iterator>

#include "base/error.h"

namespace godwit::eval {

int64_t RemainingTokens(int64_t length_tokens, int64_t taken_tokens) {
  if (taken_tokens <= length_tokens) return length_tokens - taken_tokens;
  Throw(ErrorKind::kInput,
        "a sample of {} tokens is too short for its question, needles and answer, which take {}",
        length_tokens, taken_tokens);
}

std::vector<int32_t> BuildToFit(
    int64_t length_tokens, int64_t taken_tokens, int64_t max_new_tokens,
    const std::function<std::vector<int32_t>(int64_t free_tokens)>& build) {
  int64_t room = RemainingTokens(length_tokens, taken_tokens);
  while (true) {
    std::vector<int32_t> prompt = build(room);
    const int64_t excess = std::ssize(prompt) + max_new_tokens - length_tokens;
    if (excess <= 0) return prompt;
    room = RemainingTokens(length_tokens, length_tokens - room + excess);
  }
}

}  // namespace godwit::eval
