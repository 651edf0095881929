#include "attention/policies/sinks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "attention/kv_store.h"
#include "attention/policies/sinks_spec.h"
#include "attention/rotary_step.h"
#include "base/error.h"

namespace godwit {
namespace {

using kernels::kTileTokens;
using ops::AlibiPlace;
using ops::KvRange;

// The token at text position t sees the sinks 0 .. S-1 and the window t-W .. t. In the cache the
// window follows the sinks without a gap, so relative to a query at cache position S + W sink i
// stands at i. Rotary scores depend on differences of positions only. So no key is ever rotated
// again: a window key keeps the rotation of its text position and meets the query rotated at t; a
// sink meets a second copy of the query, rotated at S + W. Until something has been evicted
// (t <= S + W) the two coincide, and the token simply sees 0 .. t, bit for bit like dense. ALiBi
// counts in the cache likewise.
class SinksPolicy : public AttentionPolicy {
 public:
  // name: as --kv spells it.
  SinksPolicy(const AttentionGeometry& geometry, const PolicyOptions& options, std::string name,
              int64_t sinks, int64_t window)
      : geometry_(geometry),
        name_(std::move(name)),
        n_sinks_(sinks),
        window_(window),
        max_step_tokens_(options.max_step_tokens),
        rotary_(geometry.rotary, 0),
        sinks_(geometry, options.kv_type),
        ring_(geometry, options.kv_type) {
    // No token of a step may take the slot of one that a query of the step needs, or the state
    // before the step, to which a step that does not end returns. So that a text can always go back
    // until the first eviction: 0 .. S + W, and a step from there.
    ring_.Reserve(PagesFor(n_sinks_ + window_ + 1 + max_step_tokens_));
    sinks_.Reserve(PagesFor(n_sinks_));
    sink_query_step_.FillConstant(rotary_, max_step_tokens_, n_sinks_ + window_);
  }

  int64_t length() const override { return length_; }
  int64_t max_length() const override { return INT64_MAX; }
  int64_t max_step_tokens() const override { return max_step_tokens_; }

  void Begin(int64_t tokens) override {
    if (tokens > max_step_tokens_) {
      Throw(ErrorKind::kInput, "a step of {} tokens, the KV policy {} takes at most {}", tokens,
            name_, max_step_tokens_);
    }
    step_.Fill(rotary_, tokens, length_);
    tokens_ = tokens;
  }

  void Attend(int64_t layer, const AttentionInput& input, const Exec& exec,
              MatrixView<float> out) override {
    Workspace::Scope scope(exec.workspace);
    const auto k = RotateKeys(exec, geometry_.shape, input.k, step_);
    ring_.Write(exec, layer, length_, k, input.v);
    WriteSinks(exec, layer, k, input.v);
    if (input.q.rows == 0) return;

    const auto window_ranges = exec.workspace.Matrix<KvRange>(1, tokens_);
    const auto sink_ranges = exec.workspace.Matrix<KvRange>(1, tokens_);
    const auto window_places = exec.workspace.Matrix<AlibiPlace>(1, tokens_);
    const auto sink_places = exec.workspace.Matrix<AlibiPlace>(1, tokens_);
    for (int64_t i = 0; i < tokens_; ++i) {
      const int64_t t = length_ + i;
      window_ranges.data[i] = WindowRange(layer, t);
      sink_ranges.data[i] = SinkRange(layer, t);
      const int64_t place = std::min(t, n_sinks_ + window_);  // of the query, in the cache
      window_places.data[i] = {.query = place, .shift = place - t};
      sink_places.data[i] = {.query = place, .shift = 0};
    }
    const ops::AttentionSource sources[] = {
        {.kv = sinks_.View(layer),
         .q = RotateQueries(exec, geometry_.shape, input.q, sink_query_step_),
         .visible = sink_ranges.RowSpan(0),
         .places = sink_places.RowSpan(0)},
        {.kv = ring_.View(layer),
         .q = RotateQueries(exec, geometry_.shape, input.q, step_),
         .visible = window_ranges.RowSpan(0),
         .places = window_places.RowSpan(0)}};
    // Without an evicted token no query sees the sinks apart from the window.
    const bool streaming = length_ + tokens_ - 1 > n_sinks_ + window_ && n_sinks_ > 0;
    ops::Attention(exec, geometry_.shape, geometry_.alibi,
                   streaming ? std::span(sources) : std::span(sources + 1, 1), input.sink_logits,
                   out);
  }

  void End() override {
    length_ += tokens_;
    furthest_ = std::max(furthest_, length_);
  }

  // What the token at `length` would see must still be in the ring, whatever was written since: the
  // furthest text there was, and a step from there that did not end.
  bool CanTruncate(int64_t length) const override {
    const int64_t oldest = furthest_ + max_step_tokens_ - ring_.pages() * kTileTokens;
    return length == length_ ||
           (0 <= length && length < length_ && FirstInWindow(length) >= oldest);
  }

  void Truncate(int64_t length) override {
    if (!CanTruncate(length)) {
      Throw(ErrorKind::kUnsupported,
            "cannot go back to {} of {} tokens: the KV policy {} has evicted what was seen then",
            length, length_, name_);
    }
    length_ = length;
  }

  KvStats Stats() const override {
    return {.policy = name_,
            .seen = length_,
            .kept = std::min(length_, n_sinks_ + window_),
            .first_dropped = n_sinks_,
            .most_kept = n_sinks_ + window_,
            .bytes = sinks_.bytes() + ring_.bytes()};
  }

 private:
  // Whether the query at text position t no longer sees everything before it.
  bool Evicted(int64_t t) const { return t > n_sinks_ + window_; }
  int64_t FirstInWindow(int64_t t) const { return Evicted(t) ? t - window_ : 0; }

  // A model's own sliding window counts in cache positions too: there the query that has evicted
  // stands at S + W and sink i at i.
  KvRange SinkRange(int64_t layer, int64_t t) const {
    if (!Evicted(t)) return {0, 0};
    const int64_t model_window = geometry_.windows[static_cast<size_t>(layer)];
    const int64_t begin =
        model_window == 0 ? 0 : std::max<int64_t>(0, n_sinks_ + window_ - model_window + 1);
    return {std::min(begin, n_sinks_), n_sinks_};
  }

  KvRange WindowRange(int64_t layer, int64_t t) const {
    const int64_t model_window = geometry_.windows[static_cast<size_t>(layer)];
    int64_t begin = FirstInWindow(t);
    if (model_window != 0) begin = std::max(begin, t - model_window + 1);
    return {begin, t + 1};
  }

  // The sinks among the tokens of this step. k: as KvStore::Write takes it.
  void WriteSinks(const Exec& exec, int64_t layer, MatrixView<const float> k,
                  MatrixView<const float> v) {
    const int64_t sinks = std::min(tokens_, n_sinks_ - length_);
    if (sinks <= 0) return;
    // Head-major rows of the first `sinks` tokens only.
    const auto first = exec.workspace.Matrix<float>(geometry_.shape.kv_heads * sinks, k.cols);
    for (int64_t row = 0; row < first.rows; ++row) {
      std::copy_n(k.Row(row / sinks * tokens_ + row % sinks), k.cols, first.Row(row));
    }
    sinks_.Write(exec, layer, length_, first, v.Rows(0, sinks));
  }

  AttentionGeometry geometry_;
  std::string name_;
  int64_t n_sinks_;
  int64_t window_;
  int64_t max_step_tokens_;
  RotaryEncoding rotary_;
  KvStore sinks_;
  KvStore ring_;
  RotaryStep step_;             // at text positions
  RotaryStep sink_query_step_;  // every token at cache position S + W
  int64_t length_ = 0;
  int64_t furthest_ = 0;  // the longest that the text has been
  int64_t tokens_ = 0;    // of the step in progress
};

// Positions must be free to be counted in the cache.
void CheckPositions(const AttentionGeometry& geometry, const std::string& name) {
  if (geometry.learned_positions != 0) {
    Throw(ErrorKind::kUnsupported,
          "the KV policy {} counts positions in its cache, but this model's are learned, {} of "
          "them, and added to the tokens as it reads them: a key that is kept cannot be moved. Use "
          "dense, or recompute:W",
          name, geometry.learned_positions);
  }
  if (geometry.rotary.scaling.kind != RotaryScaling::Kind::kDynamic) return;
  Throw(ErrorKind::kUnsupported,
        "the KV policy {} needs fixed rotary frequencies, but this model's rope_scaling is "
        "dynamic: its frequencies change with the length of the text, which is endless here",
        name);
}

// Where all layers have a window of their own, the sinks must lie within it.
void CheckSinksAreSeen(const AttentionGeometry& geometry, const std::string& name, int64_t sinks,
                       int64_t window) {
  int64_t farthest = 0;
  for (const int64_t size : geometry.windows) {
    if (size == 0) return;
    farthest = std::max(farthest, size);
  }
  if (sinks == 0 || sinks + window < farthest) return;
  Throw(
      ErrorKind::kUnsupported,
      "the KV policy {} would lose its sinks: the model itself looks back at {} tokens only{}",
      name, farthest,
      farthest > sinks + 1 ? fmt::format(", so use sinks:{}+{}", sinks, farthest - sinks - 1) : "");
}

}  // namespace

std::unique_ptr<AttentionPolicy> MakeSinksPolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& options,
                                                 std::string_view arguments) {
  const SinksSpec spec = ParseSinksSpec(arguments);
  const std::string name = spec.ToString();
  CheckPositions(geometry, name);
  CheckSinksAreSeen(geometry, name, spec.kept_first(), spec.rolling());
  return std::make_unique<SinksPolicy>(geometry, options, name, spec.kept_first(), spec.rolling());
}

std::unique_ptr<AttentionPolicy> MakeWindowPolicy(const AttentionGeometry& geometry,
                                                  const PolicyOptions& options,
                                                  std::string_view arguments) {
  const auto window = ParseTokenCount(arguments);
  if (!window || *window < 1) {
    Throw(ErrorKind::kInput,
          "the KV policy \"window:{}\" is not window:W with a window of W >= 1 tokens (for example "
          "window:2048)",
          arguments);
  }
  const std::string name = fmt::format("window:{}", *window);
  CheckPositions(geometry, name);
  return std::make_unique<SinksPolicy>(geometry, options, name, /*sinks=*/0, *window);
}

}  // namespace godwit
