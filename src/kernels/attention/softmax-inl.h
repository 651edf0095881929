// The softmax of a tile: products of a query and keys to weights, in powers of two
// (kernel_table.h). Include after one of vec/*.h.
//
// A row's maximum is an integer and rises only when a score passes it, so most tiles need no
// horizontal maximum, and rescaling is exact.
#pragma once

#include "kernels/attention/rows-inl.h"
#include "kernels/generic/map-inl.h"
#include "kernels/generic/math-inl.h"

namespace godwit::kernels {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();
constexpr float kLog2E = 0x1.715476p+0f;

GODWIT_INLINE bool IsWhole(TileSpan span) { return span.begin == 0 && span.end == kTileTokens; }

// How a product becomes a score, log2(e) times as large and less the maximum: Of(j) + offset.
struct FloatScores {
  const float* products;
  float scale;
  GODWIT_INLINE Vec operator()(int64_t j, Vec offset) const {
    return MulAdd(Load(products + j), Set1(scale), offset);
  }
};
// Scores of keys that have a scale each.
struct ScaledScores {
  const float* products;
  float scale;
  const float* k_scales;
  GODWIT_INLINE Vec operator()(int64_t j, Vec offset) const {
    return MulAdd(Mul(Load(products + j), Set1(scale)), Load(k_scales + j), offset);
  }
};
// Scores of products that are integers, too high by `excess`.
struct Int8Scores {
  const float* products;
  float scale;
  const float* k_scales;
  int32_t excess;
  GODWIT_INLINE Vec operator()(int64_t j, Vec offset) const {
    const Vec product = IntsToFloats(AddToInts(Load(products + j), -excess));
    return MulAdd(Mul(product, Set1(scale)), Load(k_scales + j), offset);
  }
};

// Scores s that are capped: cap * tanh(s / cap), where tanh(x) = 1 - 2 / (2^(2 log2(e) x) + 1).
template <class Scores>
struct CappedScores {
  Scores of;
  float cap;
  GODWIT_INLINE Vec operator()(int64_t j, Vec offset) const {
    // tanh is 1 long before 2^126.
    const Vec power = Exp2(Min(Set1(126.0f), Mul(of(j, Zero()), Set1(2.0f / cap))));
    const Vec tanh = Sub(Set1(1.0f), Div(Set1(2.0f), Add(power, Set1(1.0f))));
    return MulAdd(tanh, Set1(cap * kLog2E), offset);
  }
};

// Scores of the keys that the span's vectors hold, less `reference`, and -infinity for those
// outside the span; returns a vector whose largest is theirs.
template <bool kWhole, class Scores>
GODWIT_INLINE Vec ScoreKeys(const Scores& of, const float* bias, TileSpan span, float reference,
                            float* scores) {
  Vec largest = Set1(kMinusInfinity);
  const int64_t first = kWhole ? 0 : span.begin / kLaneFloats * kLaneFloats;
  const int64_t end = kWhole ? kTileTokens : WholeLanes(span.end);
  for (int64_t j = first; j < end; j += kLanes) {
    Vec offset = Set1(-reference);
    if (bias != nullptr) offset = MulAdd(Load(bias + j), Set1(kLog2E), offset);
    Vec score = of(j, offset);
    // Scores outside the span may be NaN, from keys that were never written: blended away.
    if constexpr (!kWhole) {
      score = Select(LanesBetween(span.begin - j, span.end - j), score, Set1(kMinusInfinity));
    }
    Store(scores + j, score);
    largest = Max(largest, score);
  }
  return largest;
}

template <class Scores>
GODWIT_INLINE void ScoreRowOf(const Scores& of, const float* bias, TileSpan span, int64_t value_dim,
                              float* state, float* scores) {
  const bool first_keys = state[0] == kMinusInfinity;
  const float reference = first_keys ? 0.0f : state[0];
  const Vec most = IsWhole(span) ? ScoreKeys<true>(of, bias, span, reference, scores)
                                 : ScoreKeys<false>(of, bias, span, reference, scores);
  if (!first_keys && !AnyPositive(most)) return;
  const float largest = ReduceMax(most);
  if (largest == kMinusInfinity) return;
  const float raise = __builtin_ceilf(largest);
  const int64_t begin = span.begin / kLaneFloats * kLaneFloats;
  Map(scores + begin, WholeLanes(span.end) - begin, scores + begin,
      [&](Vec score) { return Sub(score, Set1(raise)); });
  const float maximum = reference + raise;
  const Vec factor = Exp2(Set1(state[0] - maximum));
  Map(state + kStateLanes, kStateHeader - kStateLanes + WholeLanes(value_dim), state + kStateLanes,
      [&](Vec sum) { return Mul(sum, factor); });
  state[0] = maximum;
}

// Computes the scores of one row, relative to the maximum of its state, which is raised to them.
// `scores` may be the products.
template <class Scores>
GODWIT_INLINE void ScoreRow(const AttendTileArgs& args, int64_t row, const Scores& of,
                            float* scores) {
  const auto score = [&](const auto& scores_of) {
    ScoreRowOf(scores_of, BiasOf(args, row), args.spans[row], args.value_dim, StateOf(args, row),
               scores);
  };
  if (args.score_cap == 0) {
    score(of);
  } else {
    score(CappedScores<Scores>{of, args.score_cap});
  }
}

template <bool kWhole, bool kRounded, class Take>
GODWIT_INLINE void WeighKeys(const float* scores, TileSpan span, float* state, Take take) {
  const int64_t first = kWhole ? 0 : span.begin / kLaneFloats * kLaneFloats;
  const int64_t end = kWhole ? kTileTokens : WholeLanes(span.end);
  for (int64_t lane = 0; lane < kLaneFloats; lane += kLanes) {
    float* lanes = state + kStateLanes + lane;
    Vec sum = Load(lanes);
    for (int64_t j = first + lane; j < end; j += kLaneFloats) {
      sum = Add(sum, take(j, Exp2<kRounded>(Load(scores + j))));
    }
    Store(lanes, sum);
  }
}

// Scores to weights: take(j, weights) gets those of the keys from j on and returns what of them the
// state's lanes add up. kRounded: to a few bits, so that they need not be exact before.
template <bool kRounded, class Take>
GODWIT_INLINE void WeighRow(const float* scores, TileSpan span, float* state, Take take) {
  if (IsWhole(span)) {
    WeighKeys<true, kRounded>(scores, span, state, take);
  } else {
    WeighKeys<false, kRounded>(scores, span, state, take);
  }
}

}  // namespace
}  // namespace godwit::kernels
