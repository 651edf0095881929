// Strategy: how a text is continued. It proposes the rows of the next step and accepts tokens from
// their logits; whoever calls it runs the model, for many texts at once.
#pragma once

#include <cstdint>
#include <span>

#include "generate/sequence.h"
#include "model/language_model.h"
#include "tensor/view.h"

namespace godwit {

// What a text brings to a step.
struct Proposal {
  Segment segment;  // views of the sequence or of the strategy, until the next call of either
  // The last rows of the segment whose logits Accept wants to see; none while a prompt is read.
  int64_t logit_rows = 0;
};

// A chunk of what is pending, at most max_tokens >= 1 of it. Needs sequence.pending() > 0.
Segment NextSegment(const Sequence& sequence, int64_t max_tokens);

class Strategy {
 public:
  virtual ~Strategy() = default;

  // A bounded piece of work of at most max_tokens >= 1 rows: a chunk of what is pending, or what
  // continues the text. Needs sequence.pending() > 0. If the step then fails, nothing has happened.
  virtual Proposal Propose(const Sequence& sequence, int64_t max_tokens) = 0;

  // After the step: logits [Proposal::logit_rows, vocab], hidden likewise (the states before the
  // final norm). The accepted tokens are appended to sequence.tokens and returned (a view of its
  // end, until the tokens next change); none without logits. Throws what the sampler throws; then
  // the text has been read and nothing is pending: it has ended.
  virtual std::span<const int32_t> Accept(Sequence& sequence, MatrixView<const float> hidden,
                                          MatrixView<float> logits) = 0;
};

}  // namespace godwit
