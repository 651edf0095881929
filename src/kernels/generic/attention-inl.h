// Attention over one KV tile, and the algebra of its states, over Vec. Include after one of
// vec/*.h.
//
// Scores and values are both products of the register tile: q by the transposed keys, then weights
// by values, on top of the values that the state holds.
#pragma once

#include "kernels/gemm/tile-inl.h"
#include "kernels/generic/elementwise-inl.h"
#include "kernels/generic/math-inl.h"

namespace godwit::kernels {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// Not std::min, std::max, PadToLanes: inline functions that translation units share (vec/avx512.h).
GODWIT_INLINE int64_t Lower(int64_t a, int64_t b) { return a < b ? a : b; }
GODWIT_INLINE int64_t Higher(int64_t a, int64_t b) { return a > b ? a : b; }
GODWIT_INLINE int64_t WholeLanes(int64_t n) {
  return (n + kLaneFloats - 1) / kLaneFloats * kLaneFloats;
}

// Turns the products of one row into scores, those into weights exp(score - maximum), and brings
// the row's state to the new maximum. bias [kTileTokens] or null. kScaled: the keys and values are
// int8, and the scales of the values end up in the weights.
template <bool kScaled>
void WeighRow(const AttendTileArgs& args, float scale, const float* bias, TileSpan span,
              float* scores, float* state) {
  const int64_t first = span.begin / kLanes * kLanes;
  Vec best = Set1(state[0]);
  for (int64_t j = first; j < span.end; j += kLanes) {
    // Scores outside the span may be NaN, from keys that were never written: blended away.
    const Mask seen = LanesBetween(span.begin - j, span.end - j);
    Vec score = Mul(Load(scores + j), Set1(scale));
    if constexpr (kScaled) score = Mul(score, Load(args.k_scales + j));
    if (bias != nullptr) score = Add(score, Load(bias + j));
    score = Select(seen, score, Set1(kMinusInfinity));
    Store(scores + j, score);
    best = Max(best, score);
  }
  const float maximum = ReduceMax(best);
  // Where every score is -infinity: exp(-infinity - 0) is zero, without that it would be NaN.
  const float reference = maximum == kMinusInfinity ? 0.0f : maximum;
  if (state[0] != maximum) {
    const Vec factor = Exp(Set1(state[0] - reference));
    float* values = state + kStateHeader;
    Map(values, WholeLanes(args.head_dim), values, [&](Vec v) { return Mul(v, factor); });
    state[0] = maximum;
    state[1] *= First(factor);
  }
  Vec sum = Zero();
  for (int64_t j = first; j < span.end; j += kLanes) {
    const Vec weight = Exp(Sub(Load(scores + j), Set1(reference)));
    if constexpr (kScaled) {
      Store(scores + j, Mul(weight, Load(args.v_scales + j)));
    } else {
      Store(scores + j, weight);
    }
    sum = Add(sum, weight);
  }
  state[1] += ReduceAdd(sum);
}

// What a product over keys or values fetches meanwhile: those of the next tile or, if there is
// none, its own.
template <class Storage>
GODWIT_INLINE const Storage* Ahead(const void* next, const void* own) {
  return static_cast<const Storage*>(next != nullptr ? next : own);
}

// values += weights by v for the keys [begin, end).
template <class Storage>
void AddValues(const AttendTileArgs& args, const float* weights, float* state, int64_t rows,
               int64_t begin, int64_t end) {
  if (begin >= end) return;
  const int64_t width = WholeLanes(args.head_dim);
  RunColumns<WidenedOperand<Storage>>(rows, width,
                                      {.a = weights + begin,
                                       .a_stride = kTileTokens,
                                       .w = static_cast<const Storage*>(args.v) + begin * width,
                                       .w_stride = width,
                                       .steps = end - begin,
                                       .resume = true,
                                       .bias = nullptr,
                                       .out = state + kStateHeader,
                                       .out_stride = args.state_stride,
                                       .ahead = Ahead<Storage>(args.next_v, args.v)});
}

// The weights of a row to integers of the largest of them, and to zeros where the row does not see
// the keys of [begin, end); returns what one of the integers stands for.
float RoundWeights(TileSpan span, int64_t begin, int64_t end, float* weights) {
  const auto seen = [&](int64_t j) {
    return Select(LanesBetween(span.begin - j, span.end - j), Load(weights + j), Zero());
  };
  Vec best = Zero();
  for (int64_t j = span.begin / kLanes * kLanes; j < span.end; j += kLanes) {
    best = Max(best, seen(j));
  }
  const float largest = ReduceMax(best);
  const float factor = largest < 0x1p-120f ? 0.0f : 127.0f / largest;
  for (int64_t j = begin / kLanes * kLanes; j < end; j += kLanes) {
    Store(weights + j, Round(Mul(seen(j), Set1(factor))));
  }
  return largest / 127.0f;
}

// values += steps by (integers by v) for the keys [begin, end).
void AddInt8Values(const AttendTileArgs& args, const float* weights, const float* steps,
                   float* state, int64_t rows, int64_t begin, int64_t end) {
  const int64_t width = WholeLanes(args.head_dim);
  alignas(64) float sums[kTileRows * kPanelColumns];
  for (int64_t column = 0; column < width; column += kPanelColumns) {
    const int64_t columns = Lower(kPanelColumns, width - column);
    RunColumns<WidenedOperand<int8_t>>(
        rows, columns,
        {.a = weights + begin,
         .a_stride = kTileTokens,
         .w = static_cast<const int8_t*>(args.v) + begin * width + column,
         .w_stride = width,
         .steps = end - begin,
         .resume = false,
         .bias = nullptr,
         .out = sums,
         .out_stride = kPanelColumns,
         .ahead = Ahead<int8_t>(args.next_v, args.v) + column * (end - begin)});
    for (int64_t r = 0; r < rows; ++r) {
      float* values = state + r * args.state_stride + kStateHeader + column;
      Map2(values, sums + r * kPanelColumns, columns, values,
           [&](Vec value, Vec sum) { return MulAdd(sum, Set1(steps[r]), value); });
    }
  }
}

// rows <= kTileRows neighbours from `row`, none of whose spans is empty.
template <class Storage>
void AttendRows(const AttendTileArgs& args, int64_t row, int64_t rows) {
  const TileSpan* spans = args.spans + row;
  // All the rows see the keys of [inner_begin, inner_end); some row those of [begin, end).
  int64_t begin = spans[0].begin, end = spans[0].end;
  int64_t inner_begin = begin, inner_end = end;
  for (int64_t r = 1; r < rows; ++r) {
    begin = Lower(begin, spans[r].begin);
    end = Higher(end, spans[r].end);
    inner_begin = Higher(inner_begin, spans[r].begin);
    inner_end = Lower(inner_end, spans[r].end);
  }
  alignas(64) float scores[kTileRows * kTileTokens];
  const int64_t first = begin / kLaneFloats * kLaneFloats;
  RunColumns<WidenedOperand<Storage>>(rows, WholeLanes(end) - first,
                                      {.a = args.q + row * args.q_stride,
                                       .a_stride = args.q_stride,
                                       .w = static_cast<const Storage*>(args.k) + first,
                                       .w_stride = kTileTokens,
                                       .steps = args.head_dim,
                                       .resume = false,
                                       .bias = nullptr,
                                       .out = scores + first,
                                       .out_stride = kTileTokens,
                                       .ahead = Ahead<Storage>(args.next_k, args.k)});
  float* state = args.state + row * args.state_stride;
  for (int64_t r = 0; r < rows; ++r) {
    const float* bias = args.bias == nullptr ? nullptr : args.bias + (row + r) * kTileTokens;
    const float scale = args.q_scales == nullptr ? args.scale : args.scale * args.q_scales[row + r];
    WeighRow<sizeof(Storage) == 1>(args, scale, bias, spans[r], scores + r * kTileTokens,
                                   state + r * args.state_stride);
  }
  if (args.q_scales != nullptr) {
    float steps[kTileRows];
    for (int64_t r = 0; r < rows; ++r) {
      steps[r] = RoundWeights(spans[r], begin, end, scores + r * kTileTokens);
    }
    return AddInt8Values(args, scores, steps, state, rows, begin, end);
  }
  // The rows share the loads of the values that all of them see. A row alone adds what it sees
  // before and after those: a weight of zero would not do, as 0 * NaN is NaN and the values of a
  // key that nobody has written can be NaN.
  if (inner_begin >= inner_end) inner_begin = inner_end = end;
  for (int64_t r = 0; r < rows; ++r) {
    AddValues<Storage>(args, scores + r * kTileTokens, state + r * args.state_stride, /*rows=*/1,
                       spans[r].begin, Lower(spans[r].end, inner_begin));
  }
  AddValues<Storage>(args, scores, state, rows, inner_begin, inner_end);
  for (int64_t r = 0; r < rows; ++r) {
    AddValues<Storage>(args, scores + r * kTileTokens, state + r * args.state_stride, /*rows=*/1,
                       inner_end, spans[r].end);
  }
}

template <class Storage>
void AttendTile(const AttendTileArgs& given) noexcept {
  AttendTileArgs args = given;
  const auto sees_nothing = [&](int64_t row) {
    return args.spans[row].begin >= args.spans[row].end;
  };
  for (int64_t row = 0; row < args.rows;) {
    if (sees_nothing(row)) {
      ++row;
      continue;
    }
    int64_t rows = 1;
    while (rows < kTileRows && row + rows < args.rows && !sees_nothing(row + rows)) ++rows;
    AttendRows<Storage>(args, row, rows);
    args.next_k = args.next_v = nullptr;  // fetched
    row += rows;
  }
}

// A sum of zero marks the empty state: the key with the maximal score adds exp(0) = 1.
void MergeState(const float* from, int64_t head_dim, float* into) noexcept {
  if (from[1] == 0.0f) return;
  const float* from_values = from + kStateHeader;
  float* values = into + kStateHeader;
  const int64_t width = WholeLanes(head_dim);
  if (into[1] == 0.0f) {
    into[0] = from[0];
    into[1] = from[1];
    Map(from_values, width, values, [](Vec v) { return v; });
    return;
  }
  const float maximum = into[0] > from[0] ? into[0] : from[0];
  const Vec mine = Exp(Set1(into[0] - maximum));
  const Vec theirs = Exp(Set1(from[0] - maximum));
  into[0] = maximum;
  into[1] = First(MulAdd(Set1(from[1]), theirs, Mul(Set1(into[1]), mine)));
  Map2(values, from_values, width, values,
       [&](Vec a, Vec b) { return MulAdd(b, theirs, Mul(a, mine)); });
}

void FinishState(const float* state, int64_t head_dim, float* out) noexcept {
  const float* values = state + kStateHeader;
  const Vec sum = Set1(state[1]);
  if (state[1] == 0.0f) {
    Map(values, head_dim, out, [](Vec) { return Zero(); });
  } else {
    Map(values, head_dim, out, [&](Vec v) { return Div(v, sum); });
  }
}

}  // namespace
}  // namespace godwit::kernels
