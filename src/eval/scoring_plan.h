// ScoringPlan: the tokens of texts that are read, and those that are scored, window by window.
//
// Several readers can follow one plan: they then score the same tokens given the same context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "eval/reader.h"
#include "eval/windows.h"

namespace godwit::eval {

struct ScoredToken {
  size_t text;       // index of the text
  int64_t position;  // in the text, without the frame
  int32_t token;
  double nll;  // negative log likelihood, in nats
};

class ScoringPlan {
 public:
  using Texts = std::span<const std::vector<int32_t>>;
  // logits: [vocab], from which the token was scored.
  using OnToken = std::function<void(const ScoredToken& scored, std::span<const float> logits)>;

  // texts: token ids without frame; each begins a new sequence. frame: the tokens in front of every
  // window (LeadingTokens), never scored. Both must outlive the plan; windows.framed is set here.
  // Throws Error(kInput) if nothing is to be scored or options make no sense.
  ScoringPlan(Texts texts, std::span<const int32_t> frame, WindowOptions windows);

  std::span<const Window> windows() const { return windows_; }
  int64_t tokens() const { return tokens_; }  // scored in all

  // Throws Error(kInput) that says what would fit if a window does not fit into the context.
  void CheckFits(const Reader& reader) const;

  // Scores one window, in order. on_chunk: called after tokens that were read together. Throws
  // Error(kFormat) for logits that are not numbers; otherwise as Session::Logits does.
  void Score(const Reader& reader, const Window& window, const OnToken& on_token,
             const Reader::OnProgress& on_chunk = {}) const;

 private:
  const Texts texts_;
  const std::span<const int32_t> frame_;
  const WindowOptions options_;
  std::vector<Window> windows_;
  int64_t tokens_ = 0;
};

}  // namespace godwit::eval
