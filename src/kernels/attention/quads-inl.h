// Attention with int8 products, over a KV tile of int8 quads. Include after one of vec/*.h.
//
// KeyOperand multiplies signed queries by unsigned keys (those of gemm/quads_native-inl.h or
// gemm/i8_widened-inl.h), ValueOperand unsigned weights by signed values. All sums are exact
// integers in the bits of floats.
#pragma once

#include "kernels/attention/softmax-inl.h"
#include "kernels/gemm/rows-inl.h"

namespace godwit::kernels {
namespace {

// The weights of a row to integers of the largest of them, and to zeros for the other keys of
// [begin, end); returns what one of the integers stands for.
GODWIT_INLINE float RoundWeights(const float* weights, float largest, TileSpan span, int64_t begin,
                                 int64_t end, uint8_t* integers) {
  const float factor = largest < 0x1p-120f ? 0.0f : 127.0f / largest;
  for (int64_t j = begin / kLanes * kLanes; j < end; j += kLanes) {
    const bool seen = j + kLanes > span.begin && j < span.end;
    const Vec weight = seen ? Mul(Load(weights + j), Set1(factor)) : Zero();
    StoreBytes(reinterpret_cast<int8_t*>(integers) + j, FloatsToInts(weight));
  }
  return largest / 127.0f;
}

// values += steps [rows] by (weights by v), for the keys [begin, end) in whole quads.
template <class ValueOperand>
void AddQuads(const AttendTileArgs& args, const RowGroup& group, const uint8_t* weights,
              const float* steps) {
  const int64_t width = WholeLanes(args.head_dim);
  const int64_t begin = group.begin / kQuad * kQuad;
  const int64_t quads = (group.end - begin + kQuad - 1) / kQuad;
  const auto* v = static_cast<const int8_t*>(args.v) + begin * width;
  const int8_t* ahead = Ahead<int8_t>(args.next_v, args.v) + begin * width;
  alignas(64) float sums[kTileRows * kPanelColumns];
  for (int64_t column = 0; column < width; column += kPanelColumns) {
    const int64_t columns = Lower(kPanelColumns, width - column);
    RunColumns<ValueOperand>(group.rows, columns,
                             {.a = weights + begin,
                              .a_stride = kTileTokens,
                              .w = v + column * kQuad,
                              .w_stride = width * kQuad,
                              .steps = quads,
                              .resume = false,
                              .bias = nullptr,
                              .out = sums,
                              .out_stride = kPanelColumns,
                              .ahead = ahead + column * quads * kQuad});
    for (int64_t r = 0; r < group.rows; ++r) {
      float* values = StateOf(args, group.first + r) + kStateHeader + column;
      Map2(values, sums + r * kPanelColumns, columns, values,
           [&](Vec value, Vec sum) { return MulAdd(IntsToFloats(sum), Set1(steps[r]), value); });
    }
  }
}

template <class KeyOperand, class ValueOperand>
void AttendQuads(const AttendTileArgs& args, const RowGroup& group) {
  alignas(64) float scores[kTileRows * kTileTokens];  // later weights
  alignas(64) uint8_t weights[kTileRows * kTileTokens];
  const int64_t first = group.begin / kLaneFloats * kLaneFloats;
  const int64_t steps_of_depth = (args.head_dim + kQuad - 1) / kQuad;
  typename KeyOperand::Prepared buffer;
  RunColumns<KeyOperand>(
      group.rows, WholeLanes(group.end) - first,
      {.a = KeyOperand::Prepare(static_cast<const int8_t*>(args.q) + group.first * args.q_stride,
                                args.q_stride, group.rows, steps_of_depth, buffer),
       .a_stride = KeyOperand::Stride(args.q_stride),
       .w = static_cast<const uint8_t*>(args.k) + first * kQuad,
       .w_stride = kTileTokens * kQuad,
       .steps = steps_of_depth,
       .resume = false,
       .bias = nullptr,
       .out = scores + first,
       .out_stride = kTileTokens,
       .ahead = Ahead<uint8_t>(args.next_k, args.k)});
  float steps[kTileRows];
  for (int64_t r = 0; r < group.rows; ++r) {
    const int64_t row = group.first + r;
    float* const own = scores + r * kTileTokens;
    float* const state = StateOf(args, row);
    ScoreRow(Int8Scores{own, args.scale * args.q_scales[row] * kLog2E, args.k_scales,
                        128 * args.q_sums[row]},
             BiasOf(args, row), args.spans[row], args.head_dim, state, own);
    const TileSpan span = args.spans[row];
    const bool whole = span.begin == 0 && span.end == kTileTokens;
    Vec most = Zero();
    WeighRow</*kRounded=*/true>(own, span, state, [&](int64_t j, Vec weight) {
      Vec scale = Load(args.v_scales + j);
      // Those of keys that are not seen may be NaN.
      if (!whole) scale = Select(LanesBetween(span.begin - j, span.end - j), scale, Zero());
      const Vec scaled = Mul(weight, scale);
      Store(own + j, scaled);
      most = MaxOrNan(most, scaled);
      return weight;
    });
    steps[r] = RoundWeights(own, ReduceMaxOrNan(most), span, group.begin / kQuad * kQuad,
                            (group.end + kQuad - 1) / kQuad * kQuad, weights + r * kTileTokens);
  }
  AddQuads<ValueOperand>(args, group, weights, steps);
}

template <class KeyOperand, class ValueOperand>
void AttendTileI8I8(const AttendTileArgs& args) noexcept {
  ForGroups(args, AttendQuads<KeyOperand, ValueOperand>);
}

}  // namespace
}  // namespace godwit::kernels
