// Attention over a KV tile that is stored as f32, or as f16 and widened. Include after one of
// vec/*.h.
//
// Scores and values are both products of the register tile: q by the transposed keys, then weights
// by values, on top of the values that the state holds.
#pragma once

#include "kernels/attention/softmax-inl.h"

namespace godwit::kernels {
namespace {

// values += weights [rows, kTileTokens] by v, for the keys [begin, end).
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

template <class Storage>
void AttendFloats(const AttendTileArgs& args, const RowGroup& group) {
  alignas(64) float scores[kTileRows * kTileTokens];  // later weights
  const int64_t first = group.begin / kLaneFloats * kLaneFloats;
  RunColumns<WidenedOperand<Storage>>(
      group.rows, WholeLanes(group.end) - first,
      {.a = static_cast<const float*>(args.q) + group.first * args.q_stride,
       .a_stride = args.q_stride,
       .w = static_cast<const Storage*>(args.k) + first,
       .w_stride = kTileTokens,
       .steps = args.head_dim,
       .resume = false,
       .bias = nullptr,
       .out = scores + first,
       .out_stride = kTileTokens,
       .ahead = Ahead<Storage>(args.next_k, args.k)});
  for (int64_t r = 0; r < group.rows; ++r) {
    const int64_t row = group.first + r;
    float* const own = scores + r * kTileTokens;
    ScoreRow(FloatScores{own, args.scale * kLog2E}, BiasOf(args, row), args.spans[row],
             args.head_dim, StateOf(args, row), own);
    WeighRow</*kRounded=*/false>(own, args.spans[row], StateOf(args, row),
                                 [&](int64_t j, Vec weights) {
                                   Store(own + j, weights);
                                   return weights;
                                 });
  }
  // The rows share the loads of the values that all of them see. A row alone adds what it sees
  // before and after those: a weight of zero would not do, as 0 * NaN is NaN and the values of a
  // key that nobody has written can be NaN.
  const bool shared = group.inner_begin < group.inner_end;
  const int64_t begin = shared ? group.inner_begin : group.end;
  const int64_t end = shared ? group.inner_end : group.end;
  const auto add_alone = [&](int64_t r, int64_t from, int64_t to) {
    AddValues<Storage>(args, scores + r * kTileTokens, StateOf(args, group.first + r), /*rows=*/1,
                       from, to);
  };
  const TileSpan* spans = args.spans + group.first;
  for (int64_t r = 0; r < group.rows; ++r) add_alone(r, spans[r].begin, Lower(spans[r].end, begin));
  AddValues<Storage>(args, scores, StateOf(args, group.first), group.rows, begin, end);
  for (int64_t r = 0; r < group.rows; ++r) add_alone(r, end, spans[r].end);
}

template <class Storage>
void AttendTile(const AttendTileArgs& args) noexcept {
  ForGroups(args, AttendFloats<Storage>);
}

}  // namespace
}  // namespace godwit::kernels
