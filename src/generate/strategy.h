// Strategy: how a text is continued. It proposes the rows of the next step and accepts tokens from
// their logits; whoever calls it runs the model, for many texts at once.
#pragma once

#include <cstdint>
#include <functional>
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

// What came of it.
struct Outcome {
  MatrixView<const float> hidden;  // [logit_rows, hidden], before the final norm
  MatrixView<float> logits;        // [logit_rows, vocab]
  // Sees the logits [vocab] from which a token is about to be chosen; may be null.
  const std::function<void(std::span<const float>)>* on_choice = nullptr;
  int64_t step_rows = 0;  // of all texts
  double step_ms = 0;     // that the model took for them
  // What computed it, for who goes on from the states.
  const LanguageModel* model = nullptr;
  const Exec* exec = nullptr;
  // Of what goes on from them and need not: a wish to stop, or null. The text has advanced, and
  // what throws kCancelled then is not to leave Accept.
  const CancelToken* cancel = nullptr;
};

// A chunk of what is pending, at most max_tokens >= 1 of it. Needs sequence.pending() > 0.
Segment NextSegment(const Sequence& sequence, int64_t max_tokens);

// The token after what the row read, which is appended to the sequence. Throws what the sampler
// throws.
int32_t Choose(Sequence& sequence, const Outcome& outcome, int64_t row);

class Strategy {
 public:
  virtual ~Strategy() = default;

  // A bounded piece of work of at most max_tokens >= 1 rows: a chunk of what is pending, or what
  // continues the text. Needs sequence.pending() > 0. If the step then fails, nothing has happened.
  virtual Proposal Propose(const Sequence& sequence, int64_t max_tokens) = 0;

  // After the step. The accepted tokens are appended to sequence.tokens and returned (a view of its
  // end, until the tokens next change); none without logits. Throws what the sampler throws; then
  // the text has been read and nothing is pending: it has ended.
  virtual std::span<const int32_t> Accept(Sequence& sequence, const Outcome& outcome) = 0;

  // After Accept of all texts of the step, for what is computed for several of them at once. The
  // texts have advanced: what it throws ends the one that is asked. exec: without a wish to stop.
  virtual void EndStep(const LanguageModel& /*model*/, const Exec& /*exec*/) {}

  // Rows that it can make use of in a step that continues the text.
  virtual int64_t MostRows() const { return 1; }

  // Memory that it took of the pool of caches is needed elsewhere, or the text has ended: it gives
  // that back and takes no more. False: it had none. Between steps.
  virtual bool GiveBack() { return false; }
};

}  // namespace godwit
