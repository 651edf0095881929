#include "generate/replay_drafts.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "generate/draft_tree.h"
#include "generate/speculative.h"

namespace godwit {

ReadAlong::ReadAlong(const LanguageModel& model, const Exec& exec, std::unique_ptr<TextCache> cache,
                     std::span<const int32_t> text)
    : model_(model),
      exec_(exec),
      cache_(std::move(cache)),
      text_(text),
      logits_(static_cast<size_t>(model.vocab_size())) {}

Outcome ReadAlong::After(int64_t position) {
  constexpr int64_t kChunk = 256;
  const int64_t hidden = model_.hidden_size();
  assert(position >= first_);
  while (cache_->length() <= position) {
    first_ = cache_->length();
    const auto rest = text_.subspan(static_cast<size_t>(first_));
    const Segment segment{rest.first(std::min(rest.size(), static_cast<size_t>(kChunk))),
                          cache_.get()};
    const auto rows = std::ssize(segment.tokens);
    states_.resize(static_cast<size_t>(rows * hidden));
    model_.Forward(exec_, {&segment, 1}, {states_.data(), rows, hidden, hidden});
  }
  const MatrixView<const float> state = {states_.data() + (position - first_) * hidden, 1, hidden,
                                         hidden};
  const MatrixView<float> logits = {logits_.data(), 1, model_.vocab_size(), model_.vocab_size()};
  model_.Logits(exec_, state, logits);
  return {.hidden = state, .logits = logits, .step_rows = 1, .model = &model_, .exec = &exec_};
}

Replay ReplayDrafts(std::span<const int32_t> text, int64_t from, const StepCosts& costs,
                    std::vector<std::unique_ptr<DraftSource>> sources, ReadAlong* model) {
  assert(from >= 1 && costs.Ms(1) > 0);
  DraftTree tree(std::move(sources));
  Replay replay;
  for (const auto& source : tree.sources()) replay.accepted.push_back({source.drafts->name(), 0});
  Sequence sequence{.tokens = {}, .cache = nullptr, .sampler = Sampler({}, 1)};
  int64_t length = from;
  while (length < std::ssize(text)) {
    const auto so_far = text.first(static_cast<size_t>(length));
    for (const auto& source : tree.sources()) source.drafts->Follow(so_far);
    tree.Grow(so_far, costs,
              {.rows = std::min(Speculative::kMostRows, costs.Largest()),
               .depth = std::min(Speculative::kMostDepth, std::ssize(text) - length - 1),
               .other_rows = 0});
    std::optional<int64_t> row = 0;
    const int64_t root = length - 1;
    while (row) {
      if (*row > 0) ++replay.accepted[tree.SourceOf(*row)].guesses;
      row = tree.Step(*row, text[static_cast<size_t>(length++)]);
    }
    ++replay.steps;
    replay.guesses += std::ssize(tree.tokens()) - 1;
    replay.ms += costs.Ms(std::ssize(tree.tokens()));
    if (model == nullptr) continue;
    sequence.tokens.insert(sequence.tokens.end(), text.begin() + std::ssize(sequence.tokens),
                           text.begin() + length);
    for (int64_t position = root; position < length - 1; ++position) {
      const Outcome outcome = model->After(position);
      for (const auto& source : tree.sources()) {
        source.drafts->Learn(text[static_cast<size_t>(position)], outcome.logits.RowSpan(0));
        if (position == length - 2) source.drafts->GoOnFrom(sequence, outcome, 0);
      }
    }
  }
  replay.tokens = length - from;
  replay.plain_ms = static_cast<double>(replay.tokens) * costs.Ms(1);
  return replay;
}

}  // namespace godwit
