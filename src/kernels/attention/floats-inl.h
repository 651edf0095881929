// Attention over a KV tile that is stored as f32, or as f16 and widened. Include after one of
// vec/*.h.
//
// Scores and values are both products of the register tile. The first is q by the transposed keys.
// The second is weights by values, on top of the values that the state holds.
#pragma once

#include "kernels/attention/softmax-inl.h"

namespace godwit::kernels {
namespace {

template <class Storage>
void AttendFloats(const AttendTileArgs& args, const RowGroup& group) {
  using Operand = WidenedOperand<Storage>;
  alignas(64) float scores[kTileRows * kTileTokens];  // later weights
  MultiplyKeys<Operand>(args, group,
                        static_cast<const float*>(args.q) + group.first * args.q_stride,
                        args.q_stride, scores);
  for (int64_t r = 0; r < group.rows; ++r) {
    const int64_t row = group.first + r;
    float* const own = scores + r * kTileTokens;
    ScoreRow(args, row, FloatScores{own, args.scale * kLog2E}, own);
    WeighRow</*kRounded=*/false>(own, args.spans[row], StateOf(args, row),
                                 [&](int64_t j, Vec weights) {
                                   Store(own + j, weights);
                                   return weights;
                                 });
  }
  ShareValues<Operand::kDepth>(
      args, group,
      [&](int64_t r, int64_t begin, int64_t end) {
        AddValues<Operand>(args, scores + r * kTileTokens, StateOf(args, group.first + r),
                           /*rows=*/1, begin, end);
      },
      [&](int64_t begin, int64_t end) {
        AddValues<Operand>(args, scores, StateOf(args, group.first), group.rows, begin, end);
      });
}

template <class Storage>
void AttendTile(const AttendTileArgs& args) noexcept {
  ForGroups(args, AttendFloats<Storage>);
}

}  // namespace
}  // namespace godwit::kernels
