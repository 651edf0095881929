#include "generate/replay_drafts.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <exception>
#include <utility>

#include "generate/step_together.h"

namespace godwit {
namespace {

thread_local double replayed_ms = 0;

// A model whose steps take the given times.
class TimedModel : public LanguageModel {
 public:
  TimedModel(const LanguageModel& model, const ReplayTimes& times, const TextCache& text)
      : model_(model), times_(times), text_(text) {}

  int64_t vocab_size() const override { return model_.vocab_size(); }
  int64_t hidden_size() const override { return model_.hidden_size(); }
  void Forward(const Exec& exec, std::span<const Segment> segments,
               MatrixView<float> hidden) const override {
    // Any other text is a fork of this one, which sees a part of its cache.
    replayed_ms +=
        segments.front().text == &text_ ? times_.step.Ms(hidden.rows) : times_.partial_ms;
    model_.Forward(exec, segments, hidden);
  }
  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override {
    model_.Logits(exec, hidden, logits);
  }
  // Only draft heads call this.
  void NormedLogits(const Exec& exec, MatrixView<const float> normed,
                    MatrixView<float> logits) const override {
    replayed_ms += times_.heads_ms;
    model_.NormedLogits(exec, normed, logits);
  }

 private:
  const LanguageModel& model_;
  const ReplayTimes& times_;
  const TextCache& text_;
};

}  // namespace

double ReplayedMs() { return replayed_ms; }

Replay ReplayDrafts(std::span<const int32_t> text, int64_t from, const StepCosts& costs,
                    std::vector<std::unique_ptr<DraftSource>> sources, DraftShape shape) {
  assert(from >= 1 && costs.Ms(1) > 0);
  DraftTree tree(std::move(sources), std::move(shape));
  Replay replay;
  for (const auto& source : tree.sources()) replay.accepted.push_back({source.drafts->name(), 0});
  int64_t length = from;
  while (length < std::ssize(text)) {
    const auto so_far = text.first(length);
    for (const auto& source : tree.sources()) source.drafts->Follow(so_far);
    tree.Grow(so_far, costs,
              {.rows = costs.Largest(), .depth = std::ssize(text) - length - 1, .other_rows = 0});
    std::optional<int64_t> row = 0;
    while (row) {
      if (*row > 0) ++replay.accepted[tree.SourceOf(*row)].draft_tokens;
      row = tree.Step(*row, text[length++]);
    }
    ++replay.steps;
    replay.draft_tokens += std::ssize(tree.tokens()) - 1;
    replay.ms += costs.Ms(std::ssize(tree.tokens()));
  }
  replay.tokens = length - from;
  replay.plain_ms = static_cast<double>(replay.tokens) * costs.Ms(1);
  return replay;
}

void ReadPrompt(std::span<const int32_t> tokens, const LanguageModel& model, const Exec& exec,
                TextCache& cache) {
  constexpr int64_t kChunk = 256;
  while (cache.length() + 1 < std::ssize(tokens)) {
    const int64_t n = std::min(kChunk, std::ssize(tokens) - 1 - cache.length());
    const Segment chunk{tokens.subspan(cache.length(), n), &cache};
    Workspace::Scope scope(exec.workspace);
    model.Forward(exec, {&chunk, 1}, exec.workspace.Matrix<float>(n, model.hidden_size()));
  }
}

Replay ReplayDrafts(std::span<const int32_t> text, const TextCache& prompt,
                    const ReplayTimes& times, std::vector<std::unique_ptr<DraftSource>> sources,
                    DraftShape shape, const LanguageModel& model, const Exec& exec) {
  const int64_t from = prompt.length() + 1;
  assert(from < std::ssize(text) && times.step.Ms(1) > 0);
  auto cache = prompt.Fork();
  const TimedModel timed(model, times, *cache);
  Speculative strategy(std::move(sources), ReplayedMs, std::move(shape));
  Sequence sequence{
      .tokens = {text.begin(), text.begin() + from},
      .cache = std::move(cache),
      .sampler = Sampler({.temperature = 0}, static_cast<int32_t>(model.vocab_size())),
      .restrict_to = [&](std::span<const int32_t> tokens, std::span<float> logits) {
        std::ranges::fill(logits, -INFINITY);
        logits[text[tokens.size()]] = 0;
      }};
  replayed_ms = 0;
  while (std::ssize(sequence.tokens) < std::ssize(text)) {
    const int64_t rest = std::ssize(text) - std::ssize(sequence.tokens);
    Participant one{.sequence = &sequence,
                    .strategy = &strategy,
                    .max_tokens = std::min(times.step.Largest(), rest)};
    StepTogether(timed, exec, {&one, 1}, ReplayedMs);
    if (one.error) std::rethrow_exception(one.error);
  }
  const int64_t tokens = std::ssize(text) - from;
  return {.accepted = strategy.stats().accepted,
          .tokens = tokens,
          .steps = strategy.stats().steps,
          .draft_tokens = strategy.stats().draft_tokens,
          .ms = replayed_ms,
          .plain_ms = static_cast<double>(tokens) * times.step.Ms(1)};
}

}  // namespace godwit
