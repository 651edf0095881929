#include "eval/suites/foreign_anchor.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "eval/suites/draws.h"

namespace godwit::eval {
namespace {

constexpr std::string_view kConstantText = "constant:";

}  // namespace

ForeignAnchor::ForeignAnchor(std::string_view kind) {
  if (kind == "first") {
    kind_ = Kind::kFirst;
  } else if (kind == "shuffled") {
    kind_ = Kind::kShuffled;
  } else if (kind == "random") {
    kind_ = Kind::kRandom;
  } else if (kind.starts_with(kConstantText) && kind.size() > kConstantText.size()) {
    kind_ = Kind::kConstant;
    text_ = kind.substr(kConstantText.size());
  } else {
    Throw(ErrorKind::kInput,
          "an anchor's tokens: expected first, shuffled, random or constant:TEXT, found {}",
          Quote(kind));
  }
}

void ForeignAnchor::PutBefore(Sample& sample, int64_t tokens, const StreamCoder& coder,
                              int64_t vocab, uint64_t seed, int64_t index) const {
  const int64_t frame = std::min(std::ssize(coder.frame), tokens);
  std::vector<int32_t> anchor(coder.frame.begin(), coder.frame.begin() + frame);
  const auto own = std::span(sample.prompt).subspan(std::ssize(coder.frame));
  Draws draws(seed, index, "anchor");
  const std::vector<int32_t> constant =
      kind_ == Kind::kConstant ? coder.encode(text_) : std::vector<int32_t>();
  for (int64_t i = 0; std::ssize(anchor) < tokens; ++i) {
    if (kind_ == Kind::kRandom) {
      anchor.push_back(static_cast<int32_t>(draws.Below(vocab)));
    } else if (kind_ == Kind::kConstant) {
      anchor.push_back(constant.back());
    } else {
      anchor.push_back(own[i % std::ssize(own)]);
    }
  }
  if (kind_ == Kind::kShuffled) {
    std::vector<int32_t> behind(anchor.begin() + frame, anchor.end());
    draws.Shuffle(behind);
    std::ranges::copy(behind, anchor.begin() + frame);
  }
  sample.prompt.insert(sample.prompt.begin(), anchor.begin(), anchor.end());
  sample.context_tokens += tokens;
  for (TokenSpan& needle : sample.needles) {
    needle.begin += tokens;
    needle.end += tokens;
  }
}

}  // namespace godwit::eval
