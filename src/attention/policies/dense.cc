#include "attention/policies/dense.h"

#include <algorithm>

#include "attention/kv_store.h"
#include "attention/rotary_step.h"
#include "base/error.h"

namespace godwit {
namespace {

class DensePolicy : public AttentionPolicy {
 public:
  DensePolicy(const AttentionGeometry& geometry, const PolicyOptions& options)
      : geometry_(geometry),
        context_(options.context),
        rotary_(geometry.rotary, options.context),
        store_(geometry, options.kv_type) {
    // 24 bytes a page. A context beyond a million tokens may allocate a few times on its way.
    constexpr int64_t kListedTokens = 1 << 20;
    store_.ReserveTable(PagesFor(std::min(context_, kListedTokens)));
  }

  int64_t length() const override { return length_; }
  int64_t max_length() const override { return context_; }
  int64_t max_step_tokens() const override { return INT64_MAX; }

  void Begin(int64_t tokens) override {
    if (tokens > context_ - length_) {
      Throw(ErrorKind::kInput, "{} tokens and {} more exceed the context of {} tokens", length_,
            tokens, context_);
    }
    store_.Reserve(PagesFor(length_ + tokens));
    step_.Fill(rotary_, tokens, length_);
    tokens_ = tokens;
  }

  void Attend(int64_t layer, const AttentionInput& input, const Exec& exec,
              MatrixView<float> out) override {
    Workspace::Scope scope(exec.workspace);
    store_.Write(exec, layer, length_, RotateKeys(exec, geometry_.shape, input.k, step_), input.v);
    if (input.q.rows == 0) return;
    const int64_t window = geometry_.windows[static_cast<size_t>(layer)];
    const auto visible = exec.workspace.Matrix<ops::KvRange>(1, tokens_);
    const auto places = exec.workspace.Matrix<ops::AlibiPlace>(1, tokens_);
    for (int64_t i = 0; i < tokens_; ++i) {
      const int64_t end = length_ + i + 1;
      visible.data[i] = {window == 0 ? 0 : std::max<int64_t>(0, end - window), end};
      places.data[i] = {.query = length_ + i, .shift = 0};
    }
    const ops::AttentionSource source{.kv = store_.View(layer),
                                      .q = RotateQueries(exec, geometry_.shape, input.q, step_),
                                      .visible = visible.RowSpan(0),
                                      .places = places.RowSpan(0)};
    ops::Attention(exec, geometry_.shape, geometry_.alibi, {&source, 1}, input.sink_logits, out);
  }

  void End() override { length_ += tokens_; }

  bool CanTruncate(int64_t length) const override { return 0 <= length && length <= length_; }

  void Truncate(int64_t length) override {
    if (!CanTruncate(length)) {
      Throw(ErrorKind::kUnsupported, "cannot go back to {} of {} tokens", length, length_);
    }
    length_ = length;
    store_.Shrink(PagesFor(length));
  }

  KvStats Stats() const override {
    return {.policy = "dense",
            .seen = length_,
            .kept = length_,
            .first_dropped = length_,
            .most_kept = context_,
            .bytes = store_.bytes()};
  }

 private:
  AttentionGeometry geometry_;
  int64_t context_;
  RotaryEncoding rotary_;
  KvStore store_;
  RotaryStep step_;
  int64_t length_ = 0;
  int64_t tokens_ = 0;  // of the step in progress
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakeDensePolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& options,
                                                 std::string_view arguments) {
  if (!arguments.empty()) {
    Throw(ErrorKind::kInput, "the KV policy \"dense\" takes no arguments, found \"{}\"", arguments);
  }
  return std::make_unique<DensePolicy>(geometry, options);
}

}  // namespace godwit
