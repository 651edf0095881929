// The int8 products of attention by tile registers, for attention/quads-inl.h: a KV tile's keys lie
// as a panel of weights does, and the weights of a row are one row of a tile register. Include
// after vec/avx512.h.
#pragma once

#include "kernels/attention/quads-inl.h"
#include "kernels/tiles_amx-inl.h"

namespace godwit::kernels {
namespace {

static_assert(kTileTokens == kPanelColumns && kTileTokens == kTileBytes);

class TileProducts {
 public:
  static constexpr int kFetchLevel = 2;

  explicit TileProducts(int64_t rows) : rows_{.rows = rows}, shapes_(rows_.height) {}

  // Rows that see nothing have scores, too, which nobody reads.
  void MultiplyKeys(const AttendTileArgs& args, PhaseRows& phase) const {
    const auto* k = static_cast<const uint8_t*>(args.k);
    const int64_t sections = args.head_dim / kSectionDepth;
    const int64_t rest = (args.head_dim % kSectionDepth + kQuad - 1) / kQuad;  // quads
    // What is left of the keys and of a tile of queries, with zeros behind it.
    alignas(64) uint8_t last_keys[kSectionBytes];
    alignas(64) int8_t last_queries[kMostTileRows * kSectionDepth];
    if (rest > 0) {
      __builtin_memset(last_keys, 0, sizeof(last_keys));
      __builtin_memset(last_queries, 0, sizeof(last_queries));
      __builtin_memcpy(last_keys, k + sections * kSectionBytes, rest * kStepBytes);
    }
    const int64_t share = rows_.SharePerProduct();
    const uint8_t* ahead = Ahead<uint8_t>(args.next_k, args.k);
    for (int64_t tile = 0; tile < rows_.tiles; ++tile) {
      const int64_t first = rows_.First(tile);
      const auto* q = static_cast<const int8_t*>(args.q) + first * args.q_stride;
      ZeroSums();
      for (int64_t section = 0; section < sections; ++section, ahead += 4 * share) {
        AddSection(q + section * kSectionDepth, args.q_stride, k + section * kSectionBytes, ahead,
                   share);
      }
      if (rest > 0) {
        for (int64_t row = 0; row < rows_.height; ++row) {
          __builtin_memcpy(last_queries + row * kSectionDepth,
                           q + row * args.q_stride + sections * kSectionDepth, rest * kQuad);
        }
        AddSection(last_queries, kSectionDepth, last_keys, ahead, share);
        ahead += 4 * share;
      }
      StoreSums(phase.scores + first * kTileTokens);
    }
  }

  void AddValues(const AttendTileArgs& args, const PhaseRows& phase) const {
    const int64_t width = WholeLanes(args.value_dim);
    const auto* v = static_cast<const int8_t*>(args.v);
    const auto* ahead = Ahead<uint8_t>(args.next_v, args.v);
    const int64_t share = width * kTileTokens / kTileBytes / rows_.tiles * kTileBytes;
    alignas(64) float sums[kMostTileRows * kPanelColumns];
    for (int64_t tile = 0; tile < rows_.tiles; ++tile) {
      FetchLines(ahead + tile * share, share);
      const int64_t first = rows_.First(tile);
      LoadTile<kRowTile>(phase.weights + first * kTileTokens, kTileTokens);
      for (int64_t column = 0; column < width; column += kPanelColumns) {
        const int64_t columns = Lower(kPanelColumns, width - column);
        for (int64_t c = 0; c < columns; c += kLanes) {
          ZeroTile<0>();
          LoadTile<5>(v + (column + c) * kQuad, width * kQuad);
          AddUnsignedBySigned<0, kRowTile, 5>();
          StoreTile<0>(sums + c, kStepBytes);
        }
        // Those that the tile before has added already are left out.
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
