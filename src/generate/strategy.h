// Strategy: how a text is continued. A strategy proposes the rows of the next step and accepts
// tokens from their logits. Its caller runs the model, for many texts at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "generate/sequence.h"
#include "model/language_model.h"
#include "tensor/view.h"

namespace godwit {

// The rows that a text brings to a step.
struct Proposal {
  Segment segment;  // views of the sequence or of the strategy, until the next call of either
  // The number of last rows of the segment whose logits Accept wants to see; 0 while a prompt is
  // read.
  int64_t logit_rows = 0;
};

// The results of a step for one text.
struct Outcome {
  MatrixView<const float> hidden;  // [logit_rows, hidden], before the final norm
  MatrixView<float> logits;        // [logit_rows, vocab]
  // Sees the logits [vocab] from which a token is about to be chosen; may be null.
  const std::function<void(std::span<const float>)>* on_choice = nullptr;
  int64_t step_rows = 0;  // rows of all texts
  double step_ms = 0;     // time that the model took for them
  // The model and the execution of the step, for strategies that compute on from the hidden states.
  const LanguageModel* model = nullptr;
  const Exec* exec = nullptr;
  // A wish to stop, or null, for work that goes on from the hidden states and is not necessary. The
  // text has advanced by then, so kCancelled must not leave Accept.
  const CancelToken* cancel = nullptr;
};

// A chunk of the pending tokens, at most max_tokens >= 1 of them. Needs sequence.pending() > 0.
Segment NextSegment(const Sequence& sequence, int64_t max_tokens);

// Chooses the token that follows the row's, and appends it to the sequence. Throws what the sampler
// throws.
int32_t Choose(Sequence& sequence, const Outcome& outcome, int64_t row);

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Proposes at most max_tokens >= 1 rows: a chunk of the pending tokens, or rows that continue the
  // text. Needs sequence.pending() > 0. If the step then fails, nothing has happened.
  virtual Proposal Propose(const Sequence& sequence, int64_t max_tokens) = 0;

  // Accepts tokens after the step. They are appended to sequence.tokens and returned (a view of its
  // end, valid until the tokens next change); none without logits. Throws what the sampler throws.
  // The text then has ended: it has been read, and nothing is pending.
  virtual std::span<const int32_t> Accept(Sequence& sequence, const Outcome& outcome) = 0;

  // Computes what serves several texts at once, after Accept of all texts of the step. The texts
  // have advanced: an error ends only the text whose strategy is asked. exec: without a wish to
  // stop.
  virtual void EndStep(const LanguageModel& /*model*/, const Exec& /*exec*/) {}

  // The most rows that the strategy can use in a decode step.
  virtual int64_t MaxRows() const { return 1; }

  // Gives back memory that the strategy took from the pool of caches, and takes no more. Called
  // between steps, when the memory is needed elsewhere or the text has ended. False: it had none.
  virtual bool ReleaseMemory() { return false; }
};

}  // namespace godwit
