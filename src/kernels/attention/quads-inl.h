// Attention with int8 products, over a KV tile of int8 quads. Include after one of vec/*.h.
//
// All sums are exact integers in the bits of floats. A class Products makes them, given the number
// of rows. MultiplyKeys(args, phase) multiplies signed queries by unsigned keys, and
// AddValues(args, phase) unsigned weights by signed values.
#pragma once

#include "kernels/attention/softmax-inl.h"
#include "kernels/gemm/rows-inl.h"

namespace godwit::kernels {
namespace {

// Rows that go through a phase (scores, weights, values) before the next one begins. They are 10 to
// 15 % faster than six rows through all phases on a Zen 4, as a row's softmax waits for its largest
// weight. They gain nothing on a processor that looks further ahead.
constexpr int64_t kPhaseRows = 66;
static_assert(kPhaseRows % kTileRows == 0);

struct PhaseRows {
  alignas(64) float scores[kPhaseRows * kTileTokens];  // later weights
  alignas(64) uint8_t weights[kPhaseRows * kTileTokens];
  float steps[kPhaseRows];  // what one of a row's weights stands for
};

// Products of a row, with keys that are kExcess too high, to weights, times the scales of their
// values; returns the largest.
template <int32_t kExcess>
GODWIT_INLINE float WeighProducts(const AttendTileArgs& args, int64_t row, PhaseRows& phase) {
  float* const scores = phase.scores + row * kTileTokens;
  float* const state = StateOf(args, row);
  const TileSpan span = args.spans[row];
  ScoreRow(args, row,
           Int8Scores{scores, args.scale * args.q_scales[row] * kLog2E, args.k_scales,
                      kExcess == 0 ? 0 : kExcess * args.q_sums[row]},
           scores);
  const bool whole = IsWhole(span);
  Vec most = Zero();
  WeighRow</*kRounded=*/true>(scores, span, state, [&](int64_t j, Vec weight) {
    Vec scale = Load(args.v_scales + j);
    // Scales of keys that are not seen may be NaN.
    if (!whole) scale = Select(LanesBetween(span.begin - j, span.end - j), scale, Zero());
    const Vec scaled = Mul(weight, scale);
    Store(scores + j, scaled);
    most = MaxOrNan(most, scaled);
    return weight;
  });
  return ReduceMaxOrNan(most);
}

// Turns weights into integers of the largest; zeros for keys that the row does not see.
GODWIT_INLINE void QuantizeWeights(TileSpan span, int64_t row, float largest, PhaseRows& phase) {
  const float* const scores = phase.scores + row * kTileTokens;
  const float factor = largest < 0x1p-120f ? 0.0f : 127.0f / largest;
  const int64_t begin = span.begin / kLanes * kLanes;
  for (int64_t j = 0; j < kTileTokens; j += kLanes) {
    const bool seen = j >= begin && j < span.end;
    const Vec weight = seen ? Mul(Load(scores + j), Set1(factor)) : Zero();
    StoreBytes(reinterpret_cast<int8_t*>(phase.weights) + row * kTileTokens + j,
               FloatsToInts(weight));
  }
  phase.steps[row] = largest / 127.0f;
}

// values += step by sums.
GODWIT_INLINE void AddStep(const float* sums, int64_t columns, float step, float* values) {
  Map2(values, sums, columns, values,
       [&](Vec value, Vec sum) { return MulAdd(IntsToFloats(sum), Set1(step), value); });
}

// Products by the register tiles of gemm/tile-inl.h; the operands are those of
// gemm/quads_native-inl.h or gemm/i8_widened-inl.h.
template <class KeyOperand, class ValueOperand>
struct VectorProducts {
  static constexpr int kFetchLevel = KeyOperand::kFetchLevel;
  static constexpr int32_t kExcess = KeyOperand::kExcess;

  explicit VectorProducts(int64_t /*rows*/) {}

  void MultiplyKeys(const AttendTileArgs& args, PhaseRows& phase) const {
    ForGroups(args, [&](const AttendTileArgs& with_next, const RowGroup& group) {
      typename KeyOperand::Prepared buffer;
      const auto* q = static_cast<const int8_t*>(args.q) + group.first * args.q_stride;
      kernels::MultiplyKeys<KeyOperand>(
          with_next, group,
          KeyOperand::Prepare(q, args.q_stride, group.rows, (args.head_dim + kQuad - 1) / kQuad,
                              buffer),
          KeyOperand::Stride(args.q_stride), phase.scores + group.first * kTileTokens);
    });
  }

  void AddValues(const AttendTileArgs& args, const PhaseRows& phase) const {
    ForGroups(args, [&](const AttendTileArgs& with_next, const RowGroup& group) {
      AddQuads(with_next, group, phase);
    });
  }

 private:
  // Adds the quads of keys that some row sees, in whole quads.
  static void AddQuads(const AttendTileArgs& args, const RowGroup& group, const PhaseRows& phase) {
    const int64_t width = WholeLanes(args.value_dim);
    const int64_t begin = group.begin / kQuad * kQuad;
    const int64_t quads = (group.end - begin + kQuad - 1) / kQuad;
    const auto* v = static_cast<const int8_t*>(args.v) + begin * width;
    Places ahead = AheadOf<int8_t>(args, BytesOfKeys<int8_t>(args) + begin * width);
    alignas(64) float sums[kTileRows * kPanelColumns];
    for (int64_t column = 0; column < width; column += kPanelColumns) {
      const int64_t columns = Lower(kPanelColumns, width - column);
      RunColumns<ValueOperand, kFetchTile>(group.rows, columns,
                                           {.a = phase.weights + group.first * kTileTokens + begin,
                                            .a_stride = kTileTokens,
                                            .w = v + column * kQuad,
                                            .w_stride = width * kQuad,
                                            .steps = quads,
                                            .resume = false,
                                            .out = sums,
                                            .out_stride = kPanelColumns,
                                            .places = ahead});
      ahead.Skip(columns * quads * kQuad);
      for (int64_t r = group.first; r < group.first + group.rows; ++r) {
        AddStep(sums + (r - group.first) * kPanelColumns, columns, phase.steps[r],
                StateOf(args, r) + kStateHeader + column);
      }
    }
  }
};

template <class Products>
void AttendTileI8I8(const AttendTileArgs& given) noexcept {
  PhaseRows phase;
  for (int64_t row = 0; row < given.rows; row += kPhaseRows) {
    const AttendTileArgs args = RowsFrom<int8_t>(given, row, kPhaseRows);
    const Products products(args.rows);
    products.MultiplyKeys(args, phase);
    float largest[kPhaseRows];
    const auto for_rows = [&](auto step) {
      for (int64_t r = 0; r < args.rows; ++r) {
        if (args.spans[r].begin < args.spans[r].end) step(r);
      }
    };
    for_rows([&](int64_t r) {
      FetchBetween<int8_t, Products::kFetchLevel>(args, r, args.rows);
      largest[r] = WeighProducts<Products::kExcess>(args, r, phase);
    });
    for_rows([&](int64_t r) { QuantizeWeights(args.spans[r], r, largest[r], phase); });
    products.AddValues(args, phase);
  }
}

}  // namespace
}  // namespace godwit::kernels
