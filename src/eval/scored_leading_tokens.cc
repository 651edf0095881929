#include "eval/scored_leading_tokens.h"

#include <vector>

#include "text/leading_tokens.h"

namespace godwit::eval {

std::vector<int32_t> ScoredLeadingTokens(const Engine& engine) {
  auto frame = godwit::LeadingTokens(
      [&](std::string_view text, bool add_special) { return engine.Tokenize(text, add_special); });
  if (const auto sink = engine.sink_token()) std::erase(frame, *sink);
  return frame;
}

}  // namespace godwit::eval
