#include "generate/recompute.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "base/error.h"

namespace godwit {

// Remembers the tokens. A step adds its tokens at the end, where they count only after End.
class Recompute::Text : public AttentionPolicy {
 public:
  explicit Text(int64_t window) : window_(window) {}

  std::span<const int32_t> WithStep(std::span<const int32_t> step) {
    tokens_.resize(static_cast<size_t>(length_));
    tokens_.insert(tokens_.end(), step.begin(), step.end());
    return tokens_;
  }

  int64_t length() const override { return length_; }
  int64_t max_length() const override { return INT64_MAX; }
  int64_t max_step_tokens() const override { return INT64_MAX; }
  void Begin(int64_t /*tokens*/) override {}
  void Attend(int64_t, const AttentionInput&, const Exec&, MatrixView<float>) override {
    assert(false);  // the model reads with caches of its own
  }
  void End() override { length_ = std::ssize(tokens_); }

  bool CanTruncate(int64_t length) const override { return 0 <= length && length <= length_; }
  void Truncate(int64_t length) override {
    if (!CanTruncate(length)) {
      Throw(ErrorKind::kUnsupported, "cannot go back to {} of {} tokens", length, length_);
    }
    length_ = length;
  }

  KvStats Stats() const override {
    return {.policy = fmt::format("recompute:{}", window_),
            .seen = length_,
            .kept = std::min(length_, window_),
            .most_kept = window_,
            .bytes = 0};
  }

 private:
  int64_t window_;
  int64_t length_ = 0;
  std::vector<int32_t> tokens_;
};

Recompute::Recompute(const LanguageModel& model, int64_t window, NewCache new_cache)
    : model_(model), window_(window), new_cache_(std::move(new_cache)) {
  assert(window >= 1);
}

std::unique_ptr<AttentionPolicy> Recompute::NewPolicy() const {
  return std::make_unique<Text>(window_);
}

void Recompute::Forward(const Exec& exec, std::span<const Segment> segments,
                        MatrixView<float> hidden) const {
  int64_t row = 0;
  for (const Segment& segment : segments) {
    auto& text = static_cast<Text&>(*segment.policy);
    const int64_t begin = text.length();
    const auto rows = hidden.Rows(row, row + std::ssize(segment.tokens));
    Read(exec, text.WithStep(segment.tokens), begin, rows);
    row += rows.rows;
  }
  for (const Segment& segment : segments) segment.policy->End();
}

// hidden: the states of the tokens from `position` to the end of the text.
void Recompute::Read(const Exec& exec, std::span<const int32_t> text, int64_t position,
                     MatrixView<float> hidden) const {
  const auto end = std::ssize(text);
  const std::unique_ptr<AttentionPolicy> cache = new_cache_();
  // As long as nothing has slid out, one pass serves all; then each token takes one.
  for (int64_t done = position; done < end;) {
    const int64_t last = std::max(done + 1, std::min(window_, end));
    const int64_t first = std::max<int64_t>(0, last - window_);
    Workspace::Scope scope(exec.workspace);
    const auto states = exec.workspace.Matrix<float>(last - first, model_.hidden_size());
    const Segment segment{
        .tokens = text.subspan(static_cast<size_t>(first), static_cast<size_t>(last - first)),
        .policy = cache.get()};
    cache->Truncate(0);
    model_.Forward(exec, {&segment, 1}, states);
    for (; done < last; ++done) {
      std::copy_n(states.Row(done - first), states.cols, hidden.Row(done - position));
    }
  }
}

}  // namespace godwit
