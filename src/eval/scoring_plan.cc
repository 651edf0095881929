#include "eval/scoring_plan.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "eval/log_probability.h"

namespace godwit::eval {
namespace {

WindowOptions Framed(WindowOptions windows, bool framed) {
  windows.framed = framed;
  return windows;
}

}  // namespace

ScoringPlan::ScoringPlan(Texts texts, std::span<const int32_t> frame, WindowOptions windows)
    : texts_(texts), frame_(frame), options_(Framed(windows, !frame.empty())) {
  std::vector<int64_t> lengths;
  for (const auto& text : texts) lengths.push_back(std::ssize(text));
  windows_ = PlanWindows(lengths, options_);
  if (windows_.empty()) {
    Throw(ErrorKind::kInput, "there is nothing to score: no text has two tokens");
  }
  for (const Window& window : windows_) tokens_ += window.end - window.score_begin;
}

void ScoringPlan::CheckFits(const Reader& reader) const {
  int64_t longest = 0;
  for (const Window& window : windows_) longest = std::max(longest, window.end - window.begin);
  const int64_t needed = std::ssize(frame_) + longest - 1;  // the last token is not read
  const int64_t limit = reader.limit_tokens();
  if (needed <= limit) return;
  const int64_t largest = std::max<int64_t>(1, limit + 1 - std::ssize(frame_));
  ErrorData data{.code = ErrorCode::kTextTooLong,
                 .found = needed,
                 .limit = limit,
                 .fits = largest,
                 .learned_positions = reader.learned_positions};
  if (options_.size > 0) {
    data.code = ErrorCode::kWindowTooLong;
    ThrowWith(data, ErrorKind::kInput, "windows of {} tokens do not fit into the context of {}",
              longest, limit);
  }
  ThrowWith(data, ErrorKind::kInput, "the text has {} tokens and the context holds {}", longest,
            limit);
}

void ScoringPlan::Score(const Reader& reader, const Window& window, const OnToken& on_token,
                        const Reader::OnProgress& on_chunk) const {
  const std::vector<int32_t>& text = texts_[window.text];
  auto tokens = std::span(text).subspan(window.begin, window.end - window.begin);
  // A whole text that needs no frame is not copied.
  std::vector<int32_t> framed;
  if (!frame_.empty()) {
    framed.assign(frame_.begin(), frame_.end());
    framed.insert(framed.end(), tokens.begin(), tokens.end());
    tokens = framed;
  }
  // Row i predicts token i + 1; the last token's row predicts nothing.
  const int64_t first = std::ssize(frame_) + window.score_begin - window.begin - 1;
  reader.logits(
      tokens.first(tokens.size() - 1),
      [&](int64_t i, std::span<const float> logits) {
        const int64_t position = window.score_begin + (i - first);
        const int32_t token = text[position];
        const double nll = -LogProbability(logits, token);
        if (std::isnan(nll)) {
          Throw(ErrorKind::kFormat,
                "the model's logits for the token at position {} are not numbers", position);
        }
        on_token({.text = window.text, .position = position, .token = token, .nll = nll}, logits);
      },
      first, on_chunk);
}

}  // namespace godwit::eval
