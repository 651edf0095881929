// Attention over a KV tile of bf16 pairs, and of int8 that is widened to them. Include after one of
// vec/*.h.
//
// Operand: a product of pairs (gemm/pairs-inl.h or gemm/pairs_native-inl.h). Its A is BF16 where a
// step multiplies a pair, and float where it multiplies the two halves; the numbers are the same.
#pragma once

#include "kernels/attention/softmax-inl.h"
#include "kernels/gemm/pairs-inl.h"

namespace godwit::kernels {
namespace {

constexpr int64_t kPair = 2;

// At most kRows rows of floats that are numbers of bf16, as the operand reads them: in place, or
// narrowed.
template <class Operand, int64_t kRows = kTileRows>
class PairRows {
 public:
  using A = typename Operand::A;
  // n elements of each, readable to even n.
  GODWIT_INLINE PairRows(const float* rows, int64_t stride, int64_t count, int64_t n) {
    if constexpr (kInPlace) {
      data_ = rows;
      stride_ = stride;
    } else {
      data_ = buffer_;
      stride_ = WholeLanes(n);
      for (int64_t r = 0; r < count; ++r) {
        int64_t i = 0;
        for (; i + kLanes <= n; i += kLanes) {
          Operand::StoreRounded(buffer_ + r * stride_ + i, Load(rows + r * stride + i));
        }
        if (i < n) {
          Operand::StoreRounded(buffer_ + r * stride_ + i, LoadFirst(rows + r * stride + i, n - i));
        }
      }
    }
  }
  const A* data() const { return data_; }
  int64_t stride() const { return stride_; }

 private:
  static constexpr bool kInPlace = sizeof(A) == sizeof(float);
  const A* data_;
  int64_t stride_;
  A buffer_[kInPlace ? 1 : kRows * kMaxHeadDim];
};

// values += the weight of one key by its value, where the row does not see the other of its pair.
template <class Operand>
void AddHalfPair(const AttendTileArgs& args, const typename Operand::A* weights, float* state,
                 int64_t key) {
  const int64_t width = WholeLanes(args.value_dim), pair = key / kPair * kPair;
  const uint32_t seen = key == pair ? 0x0000ffffu : 0xffff0000u;
  alignas(64) BF16 words[kPair * kPanelColumns];
  for (int64_t column = 0; column < width; column += kPanelColumns) {
    const int64_t columns = Lower(kPanelColumns, width - column);
    const BF16* v = static_cast<const BF16*>(args.v) + pair * width + column * kPair;
    for (int64_t c = 0; c < columns; ++c) {
      uint32_t word;
      __builtin_memcpy(&word, v + c * kPair, sizeof(word));
      word &= seen;
      __builtin_memcpy(words + c * kPair, &word, sizeof(word));
    }
    RunColumns<Operand>(/*rows=*/1, columns,
                        {.a = weights + pair,
                         .a_stride = kTileTokens,
                         .w = words,
                         .w_stride = kPair * kPanelColumns,
                         .steps = 1,
                         .resume = true,
                         .out = state + kStateHeader + column,
                         .out_stride = args.state_stride,
                         .ahead = words});
  }
}

// values += what one row sees, the keys [begin, end).
template <class Operand>
void AddAlone(const AttendTileArgs& args, const typename Operand::A* weights, float* state,
              int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (begin % kPair != 0) AddHalfPair<Operand>(args, weights, state, begin++);
  AddValues<Operand>(args, weights, state, /*rows=*/1, begin, end / kPair * kPair);
  if (end % kPair != 0 && begin < end) AddHalfPair<Operand>(args, weights, state, end - 1);
}

// The products of a row to its weights. kScaled: keys and values were int8, and the scales of the
// values end up in the weights.
template <class Operand, bool kScaled>
GODWIT_INLINE void WeighPairs(const AttendTileArgs& args, int64_t row, float* scores,
                              typename Operand::A* weights) {
  const TileSpan span = args.spans[row];
  float* const state = StateOf(args, row);
  const float scale = args.scale * kLog2E;
  if constexpr (kScaled) {
    ScoreRow(args, row, ScaledScores{scores, scale, args.k_scales}, scores);
    WeighRow</*kRounded=*/true>(scores, span, state, [&](int64_t j, Vec weight) {
      // Keys that are not seen may have a scale of NaN.
      const Mask seen = LanesBetween(span.begin - j, span.end - j);
      Operand::StoreRounded(weights + j,
                            Mul(weight, Select(seen, Load(args.v_scales + j), Zero())));
      return weight;
    });
  } else {
    ScoreRow(args, row, FloatScores{scores, scale}, scores);
    WeighRow</*kRounded=*/true>(scores, span, state, [&](int64_t j, Vec weight) {
      return Operand::StoreRounded(weights + j, weight);
    });
  }
}

template <class Operand, bool kScaled>
void AttendPairs(const AttendTileArgs& args, const RowGroup& group) {
  using A = typename Operand::A;
  alignas(64) float scores[kTileRows * kTileTokens];
  alignas(64) A weights[kTileRows * kTileTokens];
  PairRows<Operand> queries(static_cast<const float*>(args.q) + group.first * args.q_stride,
                            args.q_stride, group.rows, args.head_dim);
  MultiplyKeys<Operand>(args, group, queries.data(), queries.stride(), scores);
  for (int64_t r = 0; r < group.rows; ++r) {
    FetchBetween<BF16, Operand::kFetchLevel>(args, r, group.rows);
    WeighPairs<Operand, kScaled>(args, group.first + r, scores + r * kTileTokens,
                                 weights + r * kTileTokens);
  }
  ShareValues<Operand::kDepth>(
      args, group,
      [&](int64_t r, int64_t begin, int64_t end) {
        AddAlone<Operand>(args, weights + r * kTileTokens, StateOf(args, group.first + r), begin,
                          end);
      },
      [&](int64_t begin, int64_t end) {
        AddValues<Operand>(args, weights, StateOf(args, group.first), group.rows, begin, end);
      });
}

template <class Operand>
void AttendTileBF16(const AttendTileArgs& args) noexcept {
  ForGroups(args, AttendPairs<Operand, /*kScaled=*/false>);
}

// Quads [rows, columns, 4] of int8, or with kExcess of int8 + 128, to pairs [rows, 2, columns, 2].
// Fetches `next` (null: nothing) meanwhile.
template <bool kExcess>
void WidenTile(const int8_t* quads, int64_t rows, int64_t columns, const void* next, BF16* pairs) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < columns; c += kLanes) {
      const int64_t at = (row * columns + c) * kQuad;
      if (next != nullptr) __builtin_prefetch(static_cast<const int8_t*>(next) + at, 0, 2);
      const Vec bytes = Load(reinterpret_cast<const float*>(quads + at));
      BF16* const low = pairs + (row * 2 * columns + c) * kPair;
      StorePairs(low, ByteOfQuads<0, kExcess>(bytes), ByteOfQuads<1, kExcess>(bytes));
      StorePairs(low + columns * kPair, ByteOfQuads<2, kExcess>(bytes),
                 ByteOfQuads<3, kExcess>(bytes));
    }
  }
}

// A tile of int8 widened to pairs, once for all its rows.
struct WidenedTile {
  explicit WidenedTile(const AttendTileArgs& given) : args(given) {
    WidenTile<true>(static_cast<const int8_t*>(given.k), (given.head_dim + kQuad - 1) / kQuad,
                    kTileTokens, given.next_k, keys);
    WidenTile<false>(static_cast<const int8_t*>(given.v), kTileTokens / kQuad,
                     WholeLanes(given.value_dim), given.next_v, values);
    args.k = keys;
    args.v = values;
    args.next_k = args.next_v = nullptr;
  }
  WidenedTile(const WidenedTile&) = delete;
  WidenedTile& operator=(const WidenedTile&) = delete;

  AttendTileArgs args;
  alignas(64) BF16 keys[kMaxHeadDim * kTileTokens];
  alignas(64) BF16 values[kMaxHeadDim * kTileTokens];
};

template <class Operand>
void AttendTileI8(const AttendTileArgs& given) noexcept {
  const WidenedTile tile(given);
  ForGroups(tile.args, AttendPairs<Operand, /*kScaled=*/true>);
}

}  // namespace
}  // namespace godwit::kernels
