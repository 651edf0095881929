#include "attention/policies/prefill.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/policies/prefill_spec.h"

namespace godwit {
namespace {

// A row's keys depend on its position alone. Neither the chunks of a prompt nor a pause, after
// which the text is read again, changes the result.
class PrefillPolicy : public AttentionPolicy {
 public:
  PrefillPolicy(const AttentionGeometry& geometry, const PrefillSpec& spec,
                std::unique_ptr<AttentionPolicy> asked)
      : geometry_(geometry), spec_(spec), asked_(std::move(asked)) {}

  std::string name() const override {
    return fmt::format("{}, read by {}", asked_->name(), spec_.ToString());
  }
  // A policy that forgets does so in its own way, and its name belongs to the reading.
  std::string reading() const override {
    const bool forgets = limit_tokens() == INT64_MAX;
    return forgets ? name() : spec_.ToString();
  }
  std::string Explain() const override {
    return fmt::format("{} The context, which is all before the question, is read by {}.",
                       asked_->Explain(), spec_.Explain());
  }
  int64_t limit_tokens() const override { return asked_->limit_tokens(); }
  int64_t max_kept_tokens() const override {
    if (limit_tokens() != INT64_MAX) return asked_->max_kept_tokens();
    constexpr int64_t kEndless = int64_t{1} << 50;
    int64_t most = 0;
    for (int64_t layer = 0; layer < geometry_.layers; ++layer) {
      // The last row of a block sees the most.
      const int64_t block = Near(layer).block;
      const int64_t length =
          block == INT64_MAX ? kEndless : kEndless - kEndless % block + block - 1;
      const ops::KvRange forgotten = Forgotten(length);
      most = std::max(most, length - (forgotten.end - forgotten.begin));
    }
    return most;
  }

  // The result holds for every beginning of the question, because the context may grow after an
  // answer.
  ops::KvRange Forgotten(int64_t length) const override {
    auto [begin, end] = asked_->Forgotten(length);
    begin = std::max(begin, spec_.anchor);
    for (int64_t layer = 0; layer < geometry_.layers; ++layer) {
      end = std::min(end, Near(layer).At(length).begin);
    }
    return {begin, std::max(begin, end)};
  }

  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    return asked_->SeenKeys(layer, position);
  }
  IndexSize IndexAt(const KvLayout& layout, int64_t position) const override {
    return asked_->IndexAt(layout, position);
  }

  void SetQuestion(int64_t position, int64_t answer) override {
    tail_from_ = std::max<int64_t>(0, position - spec_.tail);
    asked_->SetQuestion(position, answer);
  }

  void LimitKeysTo(ops::KvRange positions) override { asked_->LimitKeysTo(positions); }

  bool separates_question() const override { return true; }
  int64_t question_dependent_tokens() const override { return spec_.tail; }
  int64_t row_by_row_from(int64_t layer) const override {
    return std::max(tail_from_, asked_->row_by_row_from(layer));
  }
  void Accept(int64_t length, std::span<const int64_t> path) override {
    asked_->Accept(length, path);
  }
  void Truncate(int64_t length) override { asked_->Truncate(length); }
  int64_t RestartPoint(int64_t length, int64_t answer) const override {
    return asked_->RestartPoint(length, answer);
  }
  bool derived_from_keys_alone() const override { return asked_->derived_from_keys_alone(); }
  TextIndex index() const override { return asked_->index(); }
  void Restore(const KvCache& cache, const TextIndex& index) override {
    asked_->Restore(cache, index);
  }
  int64_t bytes() const override { return asked_->bytes(); }

  void Plan(const RowRun& run) override { asked_->Plan(run); }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    Looks looks;
    if (run.position < tail_from_) AddContext(run, layer, looks);
    const Looks asked = asked_->Select(run, layer, queries);  // it may learn of the context
    if (run.position + run.rows <= tail_from_) return looks;
    for (Look look : asked.span()) {
      look.visible.from = std::max(look.visible.from, tail_from_);
      looks.Add(look);
    }
    looks.AddRead(asked.read_bytes());
    looks.SetBefore(asked.before());
    return looks;
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::unique_ptr<AttentionPolicy>(new PrefillPolicy(*this));
  }

 private:
  PrefillPolicy(const PrefillPolicy& other)
      : geometry_(other.geometry_),
        spec_(other.spec_),
        asked_(other.asked_->Fork()),
        tail_from_(other.tail_from_) {}

  bool SeesAll(int64_t layer) const { return geometry_.windows[layer] == 0; }

  // The keys that a row of the context sees beside the anchor. A layer with a window or chunks of
  // the model's own needs no star.
  ops::Visible Near(int64_t layer) const {
    if (SeesAll(layer)) {
      return {.window = spec_.window, .block = spec_.block, .overlap = spec_.overlap};
    }
    ops::Visible near = geometry_.SeenIn(layer);
    near.window = std::min(near.window, spec_.window);
    return near;
  }

  void AddContext(const RowRun& run, int64_t layer, Looks& looks) const {
    if (SeesAll(layer) && spec_.anchor > 0 && run.position + run.rows > spec_.block) {
      // The overlap of the second block may lie in the anchor, too, but each key is shown once.
      const int64_t second = std::min(spec_.anchor, spec_.block - spec_.overlap);
      const int64_t third = second < spec_.anchor ? 2 * spec_.block : tail_from_;
      looks.Add(
          {.visible = {.end = second, .from = spec_.block, .until = std::min(third, tail_from_)}});
      if (third < tail_from_) {
        looks.Add({.visible = {.end = spec_.anchor, .from = third, .until = tail_from_}});
      }
    }
    ops::Visible near = Near(layer);
    near.until = tail_from_;
    looks.Add({.visible = near});
  }

  AttentionGeometry geometry_;
  PrefillSpec spec_;
  std::unique_ptr<AttentionPolicy> asked_;
  int64_t tail_from_ = 0;  // first row that sees what asked_ shows
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakePrefillPolicy(const AttentionGeometry& geometry,
                                                   std::string_view spec,
                                                   std::unique_ptr<AttentionPolicy> asked) {
  return std::make_unique<PrefillPolicy>(geometry, ParsePrefill(spec), std::move(asked));
}

}  // namespace godwit
