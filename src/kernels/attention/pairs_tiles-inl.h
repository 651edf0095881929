// Attention over a KV tile of bf16 pairs, and of int8 that is widened to them, by tile registers.
// Keys and values lie as the columns of a product do, and the sums of the values are accumulators.
// Include after vec/avx512.h, where there is AVX512_BF16.
#pragma once

#include "kernels/attention/pairs-inl.h"
#include "kernels/attention/tiles-inl.h"
#include "kernels/gemm/pairs_native-inl.h"

namespace godwit::kernels {
namespace {

// Tokens whose values one product adds.
constexpr int64_t kPairSection = kSectionDepth / int64_t{sizeof(BF16)};
static_assert(kTileTokens == 2 * kPairSection);

// Rows that go through a phase (scores, weights, values) before the next one begins.
constexpr int64_t kPairRows = 4 * kMaxTileRows;

// values += weights [rows, kTileTokens] by those of kColumnTiles times 16 dimensions, from `column`
// on.
template <int kColumnTiles>
GODWIT_INLINE void AddColumns(const AttendTileArgs& args, const TiledRows& rows, int64_t tile,
                              int64_t column, const BF16* weights, FetchEvenly& fetch) {
  const int64_t stride = WholeLanes(args.value_dim) * kQuad;
  const int64_t state_stride = args.state_stride * int64_t{sizeof(float)};
  const auto* v = static_cast<const uint8_t*>(args.v) + column * kQuad;
  const BF16* w = weights + rows.First(tile) * kTileTokens;
  float* const sums = StateOf(args, rows.First(tile)) + kStateHeader + column;
  LoadSums<kColumnTiles>(sums, state_stride);
  for (int64_t section = 0; section < 2; ++section) {
    AddSection<PairByPair, kColumnTiles>(w + section * kPairSection, kTileTokens * sizeof(BF16),
                                         v + section * kPairSection / kPair * stride, stride,
                                         fetch);
  }
  StoreSums<kColumnTiles>(sums, state_stride);
}

// values += weights [rows, kTileTokens] by those of the tile.
void AddValuesByTiles(const AttendTileArgs& args, const TiledRows& rows, const BF16* weights,
                      FetchEvenly& fetch) {
  const int64_t width = WholeLanes(args.value_dim);
  // Rows that the last tile computes again keep what the one before it has made of them.
  const int64_t twice = (rows.tiles - 1) * rows.height - rows.First(rows.tiles - 1);
  alignas(64) float kept[kPairRows / kMaxTileRows * kMaxHeadDim];
  for (int64_t tile = 0; tile < rows.tiles; ++tile) {
    float* const values = StateOf(args, rows.First(tile)) + kStateHeader;
    const int64_t keep = tile + 1 < rows.tiles ? 0 : twice;
    for (int64_t r = 0; r < keep; ++r) {
      __builtin_memcpy(kept + r * width, values + r * args.state_stride, width * sizeof(float));
    }
    for (int64_t column = 0; column < width; column += kPanelColumns) {
      switch ((width - column) / kLaneFloats) {
        case 1:
          AddColumns<1>(args, rows, tile, column, weights, fetch);
          break;
        case 2:
          AddColumns<2>(args, rows, tile, column, weights, fetch);
          break;
        case 3:
          AddColumns<3>(args, rows, tile, column, weights, fetch);
          break;
        default:
          AddColumns<4>(args, rows, tile, column, weights, fetch);
      }
    }
    for (int64_t r = 0; r < keep; ++r) {
      __builtin_memcpy(values + r * args.state_stride, kept + r * width, width * sizeof(float));
    }
  }
}

// The next tile, over the products and the softmax of each row.
GODWIT_INLINE FetchEvenly FetchNext(const AttendTileArgs& args, const TiledRows& rows) {
  const int64_t panels = (args.value_dim + kPanelColumns - 1) / kPanelColumns;
  return {AheadOf<BF16>(args, 0), BytesOfKeys<BF16>(args) + BytesOfValues<BF16>(args),
          KeyProducts(rows, args.head_dim * int64_t{sizeof(BF16)}) + 8 * panels * rows.tiles +
              rows.rows};
}

// Whether no value of the tile is infinite or NaN.
bool AllFinite(const AttendTileArgs& args) {
  const auto* v = static_cast<const BF16*>(args.v);
  const __m512i exponent = _mm512_set1_epi16(0x7f80);
  __mmask32 infinite = 0;
  for (int64_t i = 0; i < kTileTokens * WholeLanes(args.value_dim); i += 2 * kLanes) {
    infinite |=
        _mm512_cmpeq_epi16_mask(_mm512_and_si512(_mm512_loadu_si512(v + i), exponent), exponent);
  }
  return infinite == 0;
}

// Adds the values that a row sees, with zeros for others. A weight of zero does not do where a
// value is infinite or NaN.
void AddSeenValues(const AttendTileArgs& args, int64_t row, const BF16* weights) {
  alignas(64) BF16 values[kMaxHeadDim * kTileTokens];
  const auto* v = static_cast<const BF16*>(args.v);
  const TileSpan span = args.spans[row];
  const int64_t width = WholeLanes(args.value_dim);
  for (int64_t j = 0; j < kTileTokens; ++j) {
    for (int64_t d = 0; d < width; ++d) {
      const int64_t at = ValueAt(kPair, width, j, d);
      values[at] = span.begin <= j && j < span.end ? v[at] : BF16{};
    }
  }
  AttendTileArgs alone = args;
  alone.state = StateOf(args, row);
  alone.v = values;
  alone.next_k = alone.next_v = nullptr;
  const TiledRows one = {.rows = 1};
  const TileShapes shapes(one.height);
  FetchEvenly fetch = FetchNext(alone, one);
  AddValuesByTiles(alone, one, weights + row * kTileTokens, fetch);
}

template <bool kScaled>
void AttendPairRows(const AttendTileArgs& args) {
  alignas(64) float scores[kPairRows * kTileTokens];
  alignas(64) BF16 weights[kPairRows * kTileTokens];
  const PairRows<NativePairOperand, kPairRows> queries(static_cast<const float*>(args.q),
                                                       args.q_stride, args.rows, args.head_dim);
  const TiledRows rows = {.rows = args.rows};
  {
    const TileShapes shapes(rows.height);
    FetchEvenly fetch = FetchNext(args, rows);
    MultiplyKeysByTiles<PairByPair>(rows, queries.data(), queries.stride() * sizeof(BF16),
                                    args.head_dim * sizeof(BF16), args.k, fetch, scores);
    bool whole = true;
    for (int64_t r = 0; r < args.rows; ++r) {
      const TileSpan span = args.spans[r];
      BF16* const own = weights + r * kTileTokens;
      fetch();
      if (!IsWhole(span)) {
        whole = false;
        __builtin_memset(own, 0, kTileTokens * sizeof(BF16));
      }
      if (span.begin >= span.end) continue;
      WeighPairs<NativePairOperand, kScaled>(args, r, scores + r * kTileTokens, own);
    }
    if (kScaled || whole || AllFinite(args)) return AddValuesByTiles(args, rows, weights, fetch);
  }
  for (int64_t r = 0; r < args.rows; ++r) {
    if (args.spans[r].begin < args.spans[r].end) AddSeenValues(args, r, weights);
  }
}

void AttendBF16ByTiles(const AttendTileArgs& args) {
  for (int64_t row = 0; row < args.rows; row += kPairRows) {
    AttendPairRows</*kScaled=*/false>(RowsFrom<float>(args, row, kPairRows));
  }
}

// Widened once, for all the rows.
void AttendI8ByTiles(const AttendTileArgs& args) {
  const WidenedTile tile(args);
  for (int64_t row = 0; row < args.rows; row += kPairRows) {
    AttendPairRows</*kScaled=*/true>(RowsFrom<float>(tile.args, row, kPairRows));
  }
}

}  // namespace
}  // namespace godwit::kernels
