#include "eval/windows.h"

#include <algorithm>

#include "base/error.h"

namespace godwit::eval {
namespace {

void Check(const WindowOptions& options) {
  if (options.size < 0) {
    Throw(ErrorKind::kInput, "a window of {} tokens: expected at least 1", options.size);
  }
  if (options.stride < 0 || options.stride > options.size) {
    Throw(ErrorKind::kInput,
          "a stride of {} with a window of {} tokens: expected 1 to the window's length",
          options.stride, options.size);
  }
  if (options.last < 0) {
    Throw(ErrorKind::kInput, "the last {} tokens of each window: expected at least 1, or 0 for all",
          options.last);
  }
  if (options.max_tokens < -1 || options.max_tokens == 0) {
    Throw(ErrorKind::kInput, "{} tokens to score: expected at least 1, or -1 for all",
          options.max_tokens);
  }
}

}  // namespace

std::vector<Window> PlanWindows(std::span<const int64_t> text_tokens,
                                const WindowOptions& options) {
  Check(options);
  int64_t left = options.max_tokens < 0 ? INT64_MAX : options.max_tokens;
  std::vector<Window> windows;
  for (size_t text = 0; text < text_tokens.size(); ++text) {
    const int64_t total = text_tokens[text];
    const int64_t size = options.size == 0 ? total : std::min(options.size, total);
    const int64_t stride = options.stride == 0 ? size : options.stride;
    int64_t scored = 0;
    for (int64_t begin = 0; scored < total && left > 0; begin += stride) {
      Window window{.text = text, .begin = begin, .end = std::min(begin + size, total)};
      window.score_begin = std::max({scored, options.framed ? begin : begin + 1,
                                     options.last == 0 ? 0 : window.end - options.last});
      scored = window.end;
      window.end = std::min(window.end, window.score_begin + std::min(left, total));
      if (window.score_begin >= window.end) continue;
      left -= window.end - window.score_begin;
      windows.push_back(window);
    }
  }
  return windows;
}

}  // namespace godwit::eval
