#include "generate/step_together.h"

#include <memory>

#include "ops/copy_rows.h"

namespace godwit {

void StepTogether(const LanguageModel& model, const Exec& exec, std::span<Participant> participants,
                  NowMs now_ms) {
  Workspace::Scope scope(exec.workspace);
  const auto segments = exec.workspace.Matrix<Segment>(1, std::ssize(participants)).RowSpan(0);
  int64_t rows = 0, logit_rows = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    Participant& one = participants[i];
    const Proposal proposal = one.strategy->Propose(*one.sequence, one.max_tokens);
    std::construct_at(&segments[i], proposal.segment);
    one.rows = std::ssize(proposal.segment.tokens);
    one.logit_rows = proposal.logit_rows;
    one.accepted = {};
    one.error = nullptr;
    rows += one.rows;
    logit_rows += one.logit_rows;
  }
  const auto hidden = exec.workspace.Matrix<float>(rows, model.hidden_size());
  const double since = now_ms();
  model.Forward(exec, segments, hidden);

  // From here on the texts have advanced and may be unable to go back, so a cancellation waits for
  // the next step. These logits of few rows are quick.
  Exec to_the_end = exec;
  to_the_end.cancel = nullptr;
  const auto states = exec.workspace.Matrix<float>(logit_rows, hidden.cols);
  const auto logits = exec.workspace.Matrix<float>(logit_rows, model.vocab_size());
  int64_t row = 0, at = 0;
  for (const Participant& one : participants) {
    row += one.rows;
    ops::CopyRows(to_the_end, hidden.Rows(row - one.logit_rows, row),
                  states.Rows(at, at + one.logit_rows));
    at += one.logit_rows;
  }
  if (logit_rows > 0) model.Logits(to_the_end, states, logits);
  const double ms = now_ms() - since;
  row = at = 0;
  for (Participant& one : participants) {
    const int64_t last = row + one.rows, end = at + one.logit_rows;
    try {
      if (one.on_states != nullptr) (*one.on_states)(hidden.Rows(row, last));
      one.accepted = one.strategy->Accept(*one.sequence, {.hidden = states.Rows(at, end),
                                                          .logits = logits.Rows(at, end),
                                                          .on_choice = one.on_choice,
                                                          .step_rows = rows,
                                                          .step_ms = ms,
                                                          .model = &model,
                                                          .exec = &to_the_end,
                                                          .cancel = exec.cancel});
    } catch (...) {
      one.error = std::current_exception();
    }
    row = last;
    at = end;
  }
  for (Participant& one : participants) {
    if (one.error) continue;
    try {
      one.strategy->EndStep(model, to_the_end);
    } catch (...) {
      one.error = std::current_exception();
    }
  }
}

}  // namespace godwit
