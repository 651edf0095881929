// Reading: a strategy that reads a text and continues nothing, for callers that want the model's
// hidden states (Participant::on_states).
#pragma once

#include "generate/strategy.h"

namespace godwit {

class Reading : public Strategy {
 public:
  Proposal Propose(const Sequence& sequence, int64_t max_tokens) override {
    return {.segment = NextSegment(sequence, max_tokens)};
  }
  std::span<const int32_t> Accept(Sequence& /*sequence*/, const Outcome& /*outcome*/) override {
    return {};
  }
};

}  // namespace godwit
