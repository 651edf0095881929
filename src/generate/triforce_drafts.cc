#include "generate/triforce_drafts.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace godwit {

TriForceDrafts::TriForceDrafts(std::unique_ptr<AttentionPolicy> policy, int64_t min_tokens,
                               ModelText::Parts small, Lengths lengths, NowMs now_ms)
    : ChainDrafts(now_ms, /*first_apart=*/true),
      part_(std::move(policy), min_tokens),
      small_(std::move(small)),
      lengths_(lengths) {
  assert(lengths_.inner >= 1 && lengths_.outer >= 1);
}

double TriForceDrafts::EndStep(const LanguageModel& /*model*/, const Exec& exec) {
  if (!small_.IsBehind()) return 0;
  const double since = now_ms();
  try {
    small_.ReadChunk(exec);
  } catch (const Error& error) {
    OnError(error);
  }
  return now_ms() - since;
}

bool TriForceDrafts::ReleaseMemory() {
  const bool any = part_.Release();
  return small_.Release() || any;
}

bool TriForceDrafts::CanDraft(const Sequence& sequence) const { return part_.Has(sequence); }

void TriForceDrafts::Draft(const Sequence& sequence, const Outcome& outcome, int64_t /*row*/,
                           int64_t most, Add add) {
  // The text may go on otherwise than the part does.
  const auto take_back = [&] { small_.TakeBack(std::ssize(sequence.tokens)); };
  try {
    DraftByPart(part_.ContinueAs(sequence), outcome, std::min(most, lengths_.outer), add);
  } catch (...) {
    take_back();
    throw;
  }
  take_back();
}

void TriForceDrafts::DraftByPart(Sequence& draft, const Outcome& outcome, int64_t most, Add add) {
  const LanguageModel& model = *outcome.model;
  Exec exec = *outcome.exec;
  exec.cancel = outcome.cancel;
  Workspace::Scope scope(exec.workspace);
  const int64_t most_rows = std::min(lengths_.inner + 1, most);
  const auto all_hidden = exec.workspace.Matrix<float>(most_rows, model.hidden_size());
  const auto all_logits = exec.workspace.Matrix<float>(most_rows, model.vocab_size());
  for (bool goes_on = true; goes_on && most > 0;) {
    tokens_.assign(1, draft.tokens.back());
    // The choice of the last row is a draft token, too.
    DrawBySmall(draft, outcome, exec, std::min(lengths_.inner, most - 1));
    const int64_t rows = std::ssize(tokens_);
    const auto hidden = all_hidden.Rows(0, rows);
    const auto logits = all_logits.Rows(0, rows);
    const Segment segment = ChainSegment(draft);
    model.Forward(exec, {&segment, 1}, hidden);
    model.Logits(exec, hidden, logits);
    const Outcome choices{.hidden = hidden, .logits = logits};
    int64_t chosen = 1;
    while (Choose(draft, choices, chosen - 1) == (chosen < rows ? tokens_[chosen] : -1)) ++chosen;
    if (rows > 1) draft.cache->Accept(chosen - 1);
    SpreadTime(chosen);
    const auto made = std::span<const int32_t>(draft.tokens).last(chosen);
    for (int64_t r = 0; r < chosen && goes_on; ++r) goes_on = add(made[r], logits.RowSpan(r));
    most -= chosen;
  }
}

Segment TriForceDrafts::ChainSegment(const Sequence& draft) {
  if (tokens_.size() == 1) return NextSegment(draft, 1);
  parents_.resize(tokens_.size());
  std::iota(parents_.begin(), parents_.end(), -1);
  return {
      .tokens = tokens_, .text = draft.cache.get(), .phase = Phase::kDecode, .parents = parents_};
}

void TriForceDrafts::DrawBySmall(const Sequence& draft, const Outcome& outcome, const Exec& exec,
                                 int64_t most) {
  if (most < 1 || !small_.CanDraw(std::ssize(draft.tokens))) return;
  small_.Draw(draft, exec, outcome.model->vocab_size(), most,
              [&](int32_t token, std::span<const float> /*logits*/) {
                tokens_.push_back(token);
                return true;
              });
}

}  // namespace godwit
