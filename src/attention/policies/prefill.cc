#include "attention/policies/prefill.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "attention/core/policy_around.h"
#include "attention/policies/prefill_spec.h"
#include "base/error.h"
#include "ops/gpu/gpu_attention.h"

namespace godwit {
namespace {

// The keys that rows of a context see, in a model's layers.
struct ContextReading {
  AttentionGeometry geometry;
  PrefillSpec spec;

  bool SeesAll(int64_t layer) const { return geometry.windows[layer] == 0; }

  // The keys that a row of the context sees beside the anchor. A layer with a window or chunks of
  // the model's own needs no star.
  ops::Visible Near(int64_t layer) const {
    if (SeesAll(layer)) {
      return {.window = spec.window, .block = spec.block, .overlap = spec.overlap};
    }
    ops::Visible near = geometry.SeenIn(layer);
    near.window = std::min(near.window, spec.window);
    return near;
  }

  // The forgotten positions that are also forgotten by the policy by which the text is asked. The
  // result holds for every beginning of the question, because the context may grow after an answer.
  ops::KvRange Forgotten(const AttentionPolicy& asked, int64_t length) const {
    auto [begin, end] = asked.Forgotten(length);
    begin = std::max(begin, spec.anchor);
    for (int64_t layer = 0; layer < geometry.layers; ++layer) {
      end = std::min(end, Near(layer).At(length).begin);
    }
    return {begin, std::max(begin, end)};
  }

  int64_t MaxKeptTokens(const AttentionPolicy& asked) const {
    if (!asked.facts().endless()) return asked.facts().max_kept_tokens;
    constexpr int64_t kEndless = int64_t{1} << 50;
    int64_t most = 0;
    for (int64_t layer = 0; layer < geometry.layers; ++layer) {
      // The last row of a block sees the most.
      const int64_t block = Near(layer).block;
      const int64_t length =
          block == INT64_MAX ? kEndless : kEndless - kEndless % block + block - 1;
      const ops::KvRange forgotten = Forgotten(asked, length);
      most = std::max(most, length - (forgotten.end - forgotten.begin));
    }
    return most;
  }

  PolicyFacts FactsAround(const AttentionPolicy& asked) const {
    PolicyFacts facts = asked.facts();
    facts.prefill = spec.ToString();
    facts.name += fmt::format(", read by {}", facts.prefill);
    // A policy that forgets does so in its own way, and its name belongs to the reading.
    facts.reading = facts.endless() ? facts.name : facts.prefill;
    facts.explanation += fmt::format(
        " The context, which is all before the question, is read by {}.", spec.Explain());
    facts.max_kept_tokens = MaxKeptTokens(asked);
    facts.separates_question = true;
    facts.question_dependent_tokens = spec.tail;
    return facts;
  }
};

void RefuseMovedAnchor(const AttentionGeometry& geometry, const PrefillSpec& spec,
                       const PolicyFacts& asked) {
  if (!spec.moves_anchor()) return;
  if (geometry.learned_positions != 0) {
    Throw(ErrorKind::kUnsupported,
          "{}: an anchor cannot be moved in a model with learned positions", spec.ToString());
  }
  if (!spec.foreign) return;
  // A window and a recurrent state would pass the anchor's tokens on to the text.
  const bool windows = std::ranges::any_of(geometry.windows, [](int64_t w) { return w != 0; });
  if (!asked.shows_all || windows || geometry.states.layers > 0) {
    Throw(ErrorKind::kUnsupported,
          "{}: tokens that are no part of the text need the KV policy dense, and a model without "
          "windows and recurrent layers",
          spec.ToString());
  }
}

// Why no GPU reads contexts; empty: one does.
std::string WhyNoGpuReads(const AttentionGeometry& geometry, DType kv_type,
                          const PolicyFacts& asked) {
  if (asked.endless()) {
    return fmt::format("a GPU reads a context if the KV policy keeps every token, found {}",
                       asked.name);
  }
  if (geometry.key_index || !geometry.layer_shapes.empty()) {
    return "a GPU reads a context if all layers have equal heads and no index of keys";
  }
  return ops::WhyNoGpuAttention(geometry.shape, geometry.alibi, kv_type);
}

// A row's keys depend on its position alone. Neither the chunks of a prompt nor a pause, after
// which the text is read again, changes the result.
class PrefillPolicy : public PolicyAround {
 public:
  PrefillPolicy(const ContextReading& reading, std::unique_ptr<AttentionPolicy> asked)
      : PolicyAround(reading.FactsAround(*asked), std::move(asked)), reading_(reading) {}

  ops::KvRange Forgotten(int64_t length) const override {
    return reading_.Forgotten(inner(), length);
  }

  void SetQuestion(const Question& question) override {
    tail_from_ = std::max<int64_t>(0, question.begin - spec().tail);
    inner().SetQuestion(question);
  }

  int64_t ContextKeys(int64_t layer, int64_t position) const override {
    if (position >= tail_from_) return inner().ContextKeys(layer, position);
    const int64_t begin = reading_.Near(layer).At(position).begin;
    const bool anchored = reading_.SeesAll(layer) && position >= spec().anchored_from();
    const int64_t anchor = spec().moves_anchor() ? spec().anchor : std::min(spec().anchor, begin);
    return position + 1 - begin + (anchored ? anchor : 0);
  }

  // Each row looks at an anchor that is not in its place from another position.
  int64_t row_by_row_from(int64_t layer) const override {
    const int64_t asked = std::max(tail_from_, inner().row_by_row_from(layer));
    const bool moves = spec().moves_anchor() && reading_.SeesAll(layer);
    return moves ? std::min(asked, spec().anchored_from()) : asked;
  }

  int64_t on_gpu_until() const override { return spec().on_gpu ? tail_from_ : 0; }
  NearOnGpu near_on_gpu() const override {
    NearOnGpu near = inner().near_on_gpu();
    near.from = std::max(near.from, tail_from_);
    return near;
  }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    Looks looks;
    if (run.position < tail_from_) AddContext(run, layer, looks);
    const Looks asked = inner().Select(run, layer, queries);  // it may learn of the context
    if (run.position + run.rows <= tail_from_) return looks;
    for (Look look : asked.span()) {
      look.visible.from = std::max(look.visible.from, tail_from_);
      if (spec().foreign) look.visible.begin = std::max(look.visible.begin, spec().anchor);
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
  PrefillPolicy(const PrefillPolicy&) = default;

  const PrefillSpec& spec() const { return reading_.spec; }

  void AddContext(const RowRun& run, int64_t layer, Looks& looks) const {
    if (reading_.SeesAll(layer) && spec().moves_anchor()) {
      if (run.position >= spec().anchored_from()) {
        looks.Add({.visible = {.end = spec().anchor, .until = tail_from_},
                   .query_place = spec().AnchorPlace(run.position)});
      }
    } else if (reading_.SeesAll(layer) && spec().anchor > 0 &&
               run.position + run.rows > spec().block) {
      // The overlap of the second block may lie in the anchor, too, but each key is shown once.
      const int64_t second = std::min(spec().anchor, spec().block - spec().overlap);
      const int64_t third = second < spec().anchor ? 2 * spec().block : tail_from_;
      looks.Add(
          {.visible = {.end = second, .from = spec().block, .until = std::min(third, tail_from_)}});
      if (third < tail_from_) {
        looks.Add({.visible = {.end = spec().anchor, .from = third, .until = tail_from_}});
      }
    }
    ops::Visible near = reading_.Near(layer);
    near.until = tail_from_;
    looks.Add({.visible = near});
  }

  ContextReading reading_;
  int64_t tail_from_ = 0;  // first row that sees what the inner policy shows
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakePrefillPolicy(const AttentionGeometry& geometry,
                                                   std::string_view spec, DType kv_type,
                                                   std::unique_ptr<AttentionPolicy> asked) {
  const PrefillSpec parsed = ParsePrefill(spec);
  RefuseMovedAnchor(geometry, parsed, asked->facts());
  if (parsed.on_gpu) {
    const std::string why = WhyNoGpuReads(geometry, kv_type, asked->facts());
    if (!why.empty()) Throw(ErrorKind::kUnsupported, "prefill {}: {}", kGpuPrefill, why);
  }
  return std::make_unique<PrefillPolicy>(ContextReading{geometry, parsed}, std::move(asked));
}

}  // namespace godwit
