// One token after the other: the definition that every faster strategy must reproduce.
#pragma once

#include "generate/strategy.h"

namespace godwit {

class Autoregressive : public Strategy {
 public:
  Proposal Propose(const Sequence& sequence, int64_t max_tokens) override;
  std::span<const int32_t> Accept(Sequence& sequence, const Outcome& outcome) override;
};

}  // namespace godwit
