#include "attention/policies/sinks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "attention/core/token_count.h"
#include "attention/policies/sinks_spec.h"
#include "base/error.h"

namespace godwit {
namespace {

std::string ExplainSinks(int64_t sinks, int64_t window) {
  return fmt::format(
      "A token sees {}the {} before it; tokens {} are forgotten, so a text may be endless. "
      "Positions are counted among the kept tokens.",
      sinks == 0 ? "" : fmt::format("the first {} of the text and ", sinks), window,
      sinks == 0 ? "further back" : "between");
}

// The token at text position t sees the sinks 0 .. S-1 and the window t-W .. t. The window follows
// the sinks without a gap: relative to a query at place S + W, sink i stands at i. Rotary scores
// depend on differences of positions only, so no key is rotated again. A window key keeps the
// rotation of its text position and meets the query rotated at t. A sink meets a second copy of the
// query, rotated at S + W. Until the first eviction (t <= S + W) both coincide, and the token sees
// 0 .. t, bit for bit as with dense. ALiBi counts the same places.
class SinksPolicy : public AttentionPolicy {
 public:
  // name: as --kv spells it.
  SinksPolicy(const AttentionGeometry& geometry, std::string name, int64_t sinks, int64_t window)
      : AttentionPolicy({.name = std::move(name),
                         .explanation = ExplainSinks(sinks, window),
                         .max_kept_tokens = sinks + window,
                         .one_rank_reason = "it counts positions among the kept tokens, of which a "
                                            "rank has a part; only dense and blocks work on "
                                            "several ranks"}),
        windows_(geometry.windows),
        n_sinks_(sinks),
        window_(window) {}

  // The dropped positions, seen from the next token at position `length`.
  ops::KvRange Forgotten(int64_t length) const override {
    if (length <= place()) return {0, 0};
    return {n_sinks_, length - window_};
  }

  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    const int64_t window = WindowOfModel(layer);
    if (position <= place()) return std::min(window, position + 1);
    return std::max<int64_t>(0, n_sinks_ - FirstPlaceSeen(window)) + std::min(window, window_ + 1);
  }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& /*queries*/) override {
    const int64_t window = WindowOfModel(layer);
    const int64_t last = run.position + run.rows - 1;
    const int64_t evicted = place() + 1;  // the first position that does not see all before it
    Looks looks;
    if (run.position < evicted) looks.Add({.visible = {.window = window, .until = evicted}});
    if (last < evicted) return looks;
    // A model's own sliding window counts places, too.
    const int64_t begin = FirstPlaceSeen(window);
    if (begin < n_sinks_) {
      looks.Add(
          {.visible = {.begin = begin, .end = n_sinks_, .from = evicted}, .query_place = place()});
    }
    looks.Add({.visible = {.window = std::min(window, window_ + 1), .from = evicted},
               .query_place = place(),
               .keys_move = true});
    return looks;
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::make_unique<SinksPolicy>(*this);
  }

 private:
  // The place of every query that no longer sees all tokens before it.
  int64_t place() const { return n_sinks_ + window_; }
  // The first place that such a query sees.
  int64_t FirstPlaceSeen(int64_t window) const {
    return std::max<int64_t>(0, place() - window + 1);
  }

  int64_t WindowOfModel(int64_t layer) const {
    const int64_t window = windows_[layer];
    return window == 0 ? INT64_MAX : window;
  }

  std::vector<int64_t> windows_;
  int64_t n_sinks_;
  int64_t window_;
};

// Counting positions in the cache requires positions that can change.
void CheckPositions(const AttentionGeometry& geometry, const std::string& name) {
  if (geometry.learned_positions != 0) {
    Throw(ErrorKind::kUnsupported,
          "the KV policy {} changes the positions of cached keys, which is impossible with this "
          "model's {} learned positions: use dense",
          name, geometry.learned_positions);
  }
  const auto rotary = std::ranges::find_if(geometry.rotaries, DependsOnContext);
  if (rotary == geometry.rotaries.end()) return;
  Throw(ErrorKind::kUnsupported,
        "the KV policy {} needs fixed rotary frequencies, but this model's rope_scaling is {}, "
        "whose frequencies change with the length of the text: use dense",
        name, rotary->scaling.kind == RotaryScaling::Kind::kLongRope ? "longrope" : "dynamic");
}

// If all layers have their own windows, the sinks must lie within one.
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
      "the KV policy {} would lose its sinks, because the model itself sees the last {} tokens "
      "only{}",
      name, farthest,
      farthest > sinks + 1 ? fmt::format(", so use sinks:{}+{}", sinks, farthest - sinks - 1) : "");
}

// A token sees its chunk from the beginning. A token placed behind the first chunk for ever would
// always see too little. Within the first chunk it sees all, as in a larger window.
void CheckFirstChunk(const AttentionGeometry& geometry, const std::string& name, int64_t place) {
  if (!geometry.chunked) return;
  const int64_t chunk = std::ranges::max(geometry.windows);
  if (chunk == 0 || place < chunk) return;
  Throw(ErrorKind::kUnsupported,
        "the KV policy {} keeps {} tokens before the newest one, but this model attends within "
        "chunks of {} tokens: keep fewer than {}",
        name, place, chunk, chunk);
}

}  // namespace

std::unique_ptr<AttentionPolicy> MakeSinksPolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& /*options*/,
                                                 std::string_view arguments) {
  const SinksSpec spec = ParseSinksSpec(arguments);
  const std::string name = spec.ToString();
  CheckPositions(geometry, name);
  CheckFirstChunk(geometry, name, spec.kept_first() + spec.rolling());
  CheckSinksAreSeen(geometry, name, spec.kept_first(), spec.rolling());
  return std::make_unique<SinksPolicy>(geometry, name, spec.kept_first(), spec.rolling());
}

std::unique_ptr<AttentionPolicy> MakeWindowPolicy(const AttentionGeometry& geometry,
                                                  const PolicyOptions& /*options*/,
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
  CheckFirstChunk(geometry, name, *window);
  return std::make_unique<SinksPolicy>(geometry, name, /*sinks=*/0, *window);
}

}  // namespace godwit
