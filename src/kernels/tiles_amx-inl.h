// The tile registers of AMX: eight of up to 16 rows of 64 bytes, and the product of two of them.
//
// A product of signed rows with unsigned columns (or the reverse) adds to each int32 of an
// accumulator up to 16 quads, without saturation: columns lie as in a panel, quad by quad.
//
// The instructions are written out, as GCC's intrinsics take a tile's number as text only and do
// not tell the compiler what memory they read.
#pragma once

#include <cstdint>

namespace godwit::kernels {
namespace {

constexpr int64_t kTileBytes = 64;  // of a row of a tile register
constexpr int64_t kMostTileRows = 16;

// Accumulators, 0 to 3, and what they multiply: `rows` rows in tile 4, columns in tiles 5 to 7.
constexpr int kFirstAccumulator = 0, kRowTile = 4, kFirstColumnTile = 5;

// Gives this thread's tile registers their shapes; they are released with it, as the operating
// system would save them with every switch of threads.
class TileShapes {
 public:
  // Rows of the accumulators and of the row tile.
  explicit TileShapes(int64_t rows) {
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t start_row = 0;
      uint8_t reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } shapes;
    for (int tile = 0; tile < 8; ++tile) {
      shapes.row_bytes[tile] = kTileBytes;
      shapes.rows[tile] =
          static_cast<uint8_t>(tile < kFirstColumnTile ? rows : int64_t{kMostTileRows});
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
  }
  ~TileShapes() { __asm__ volatile("tilerelease"); }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;
};

template <int kTile>
GODWIT_INLINE void ZeroTile() {
  __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

// stride: bytes between the rows of a tile.
template <int kTile>
GODWIT_INLINE void LoadTile(const void* p, int64_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
GODWIT_INLINE void StoreTile(void* p, int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
}

// sum += signed rows by unsigned columns.
template <int kSum, int kRows, int kColumns>
GODWIT_INLINE void AddSignedByUnsigned() {
  __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kColumns));
}

// sum += unsigned rows by signed columns.
template <int kSum, int kRows, int kColumns>
GODWIT_INLINE void AddUnsignedBySigned() {
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kColumns));
}

}  // namespace
}  // namespace godwit::kernels
