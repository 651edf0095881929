#include "eval/frame.h"

#include <algorithm>

namespace godwit::eval {

std::vector<int32_t> TextFrame(const Engine& engine) {
  // Not the frame of an empty text: what some tokenizers put behind a text would be part of it.
  const auto framed = engine.Tokenize("a", /*add_special=*/true);
  const auto plain = engine.Tokenize("a", /*add_special=*/false);
  const auto begin = std::search(framed.begin(), framed.end(), plain.begin(), plain.end());
  std::vector<int32_t> frame(framed.begin(), begin);
  if (const auto sink = engine.sink_token()) std::erase(frame, *sink);
  return frame;
}

}  // namespace godwit::eval
