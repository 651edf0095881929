#include "eval/text_frame.h"

#include <vector>

#include "text/text_frame.h"

namespace godwit::eval {

std::vector<int32_t> TextFrame(const Engine& engine) {
  auto frame = godwit::TextFrame(
      [&](std::string_view text, bool add_special) { return engine.Tokenize(text, add_special); });
  if (const auto sink = engine.sink_token()) std::erase(frame, *sink);
  return frame;
}

}  // namespace godwit::eval
