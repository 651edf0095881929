// Strategy: how a sequence is continued, one step at a time.
#pragma once

#include <cstdint>
#include <span>

#include "generate/sequence.h"
#include "ops/exec.h"

namespace godwit {

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Does one bounded piece of work: reads a chunk of what is pending, or continues the text. The
  // accepted tokens are appended to sequence.tokens and returned (a view of its end, until the
  // tokens next change); none while the prompt is still being read. Needs sequence.pending() > 0.
  // Throws what the model throws, kCancelled included, and leaves the sequence as it was. Throws
  // what the sampler throws; then the text has been read and nothing is pending: it has ended.
  virtual std::span<const int32_t> Step(Sequence& sequence, const Exec& exec) = 0;
};

}  // namespace godwit
