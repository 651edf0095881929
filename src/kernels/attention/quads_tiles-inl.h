// The int8 products of attention by tile registers, for attention/quads-inl.h: the weights of a row
// are one row of a tile register. Include after vec/avx512.h.
#pragma once

#include "kernels/attention/quads-inl.h"
#include "kernels/attention/tiles-inl.h"

namespace godwit::kernels {
namespace {

static_assert(kTileTokens == kTileBytes);

class TileProducts {
 public:
  static constexpr int kFetchLevel = 1;
  static constexpr int32_t kExcess = 128;

  explicit TileProducts(int64_t rows) : rows_{.rows = rows}, shapes_(rows_.height) {}

  void MultiplyKeys(const AttendTileArgs& args, PhaseRows& phase) const {
    FetchEvenly fetch(AheadOf<int8_t>(args, 0), BytesOfKeys<int8_t>(args),
                      KeyProducts(rows_, args.head_dim));
    MultiplyKeysByTiles<SignedByUnsigned>(rows_, args.q, args.q_stride, args.head_dim, args.k,
                                          fetch, phase.scores);
  }

  void AddValues(const AttendTileArgs& args, const PhaseRows& phase) const {
    const int64_t width = WholeLanes(args.value_dim);
    const auto* v = static_cast<const int8_t*>(args.v);
    FetchEvenly fetch(AheadOf<int8_t>(args, BytesOfKeys<int8_t>(args)), BytesOfValues<int8_t>(args),
                      rows_.tiles * width / kLanes);
    alignas(64) float sums[kMaxTileRows * kPanelColumns];
    for (int64_t tile = 0; tile < rows_.tiles; ++tile) {
      const int64_t first = rows_.First(tile);
      LoadTile<kRowTile>(phase.weights + first * kTileTokens, kTileTokens);
      for (int64_t column = 0; column < width; column += kPanelColumns) {
        const int64_t columns = Lower(kPanelColumns, width - column);
        for (int64_t c = 0; c < columns; c += kLanes) {
          ZeroTile<0>();
          LoadTile<5>(v + (column + c) * kQuad, width * kQuad);
          AddUnsignedBySigned<0, kRowTile, 5>();
          StoreTile<0>(sums + c, kStepBytes);
          fetch();
        }
        // Rows that the tile before has added already are left out.
        for (int64_t r = tile * rows_.height; r < first + rows_.height; ++r) {
          if (args.spans[r].begin >= args.spans[r].end) continue;
          AddStep(sums + (r - first) * kPanelColumns, columns, phase.steps[r],
                  StateOf(args, r) + kStateHeader + column);
        }
      }
    }
  }

 private:
  TiledRows rows_;
  TileShapes shapes_;
};

}  // namespace
}  // namespace godwit::kernels
