#include "generate/partial_drafts.h"

namespace godwit {

void PartialDrafts::Draft(const Sequence& sequence, const Outcome& outcome, int64_t /*row*/,
                          int64_t /*most*/, Add add) {
  Sequence& draft = part_.ContinueAs(sequence);
  const LanguageModel& model = *outcome.model;
  Exec exec = *outcome.exec;
  exec.cancel = outcome.cancel;
  Workspace::Scope scope(exec.workspace);
  const auto hidden = exec.workspace.Matrix<float>(1, model.hidden_size());
  const auto logits = exec.workspace.Matrix<float>(1, model.vocab_size());
  bool goes_on = true;
  while (goes_on) {
    const Segment segment = NextSegment(draft, 1);
    model.Forward(exec, {&segment, 1}, hidden);
    model.Logits(exec, hidden, logits);
    goes_on = add(Choose(draft, {.hidden = hidden, .logits = logits}, 0), logits.RowSpan(0));
  }
}

}  // namespace godwit
