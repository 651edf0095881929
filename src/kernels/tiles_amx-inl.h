// The tile registers of AMX: eight of up to 16 rows of 64 bytes, and the product of two of them.
//
// A product of rows and columns of bytes, signed or not, adds to each int32 of an accumulator up to
// 16 quads, without saturation. Columns lie as in a panel, quad by quad. A bf16 product adds to
// each float up to 16 pairs. It adds their even numbers, in order, one rounding each, the odd ones
// in the same way, and the sum of both. Subnormals count as zero.
//
// The instructions are written out. GCC's intrinsics take a tile's number as text only and do not
// tell the compiler what memory they read.
#pragma once

#include <cstdint>

namespace godwit::kernels {
namespace {

constexpr int64_t kTileBytes = 64;  // of a row of a tile register
constexpr int64_t kMaxTileRows = 16;

// Accumulators, 0 to 3, and what they multiply: rows in tiles from 4 on, columns in those behind.
constexpr int kRowTile = 4, kTiles = 8;

// Gives this thread's tile registers their shapes; they are released with it, as the operating
// system would save them with every switch of threads.
class TileShapes {
 public:
  // Rows of the accumulators and of the row tiles, of which there are so many, and elements of each
  // row that a product takes.
  explicit TileShapes(int64_t rows, int64_t row_tiles = 1, int64_t depth = kTileBytes) {
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t start_row = 0;
      uint8_t reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } shapes;
    const int64_t columns = kRowTile + row_tiles;  // the first tile of them
    for (int64_t tile = 0; tile < kTiles; ++tile) {
      const bool is_rows = tile >= kRowTile && tile < columns;
      shapes.row_bytes[tile] = static_cast<uint16_t>(is_rows ? depth : kTileBytes);
      shapes.rows[tile] = static_cast<uint8_t>(tile < columns ? rows : depth / kQuad);
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

// sum += signed rows by signed columns.
template <int kSum, int kRows, int kColumns>
GODWIT_INLINE void AddSignedBySigned() {
  __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kColumns));
}

// sum += unsigned rows by signed columns.
template <int kSum, int kRows, int kColumns>
GODWIT_INLINE void AddUnsignedBySigned() {
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kColumns));
}

// sum += rows by columns, of bf16.
template <int kSum, int kRows, int kColumns>
GODWIT_INLINE void AddPairs() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kColumns));
}

// The products of a section: the rows of kRowTile by the columns of a tile.
struct SignedByUnsigned {
  template <int kSum, int kColumns>
  static GODWIT_INLINE void Add() {
    AddSignedByUnsigned<kSum, kRowTile, kColumns>();
  }
};
struct PairByPair {
  template <int kSum, int kColumns>
  static GODWIT_INLINE void Add() {
    AddPairs<kSum, kRowTile, kColumns>();
  }
};

// Columns lie in sections: as a panel of weights does, and the keys of a KV tile.
constexpr int64_t kStepBytes = kPanelColumns * kQuad;  // a quad of every column
constexpr int64_t kSectionDepth = kTileBytes;          // bytes of a row that a product takes
constexpr int64_t kSectionBytes = kSectionDepth * kPanelColumns;

// Rows that go through a section together, in tiles of equal height. The last tile may begin inside
// the one before it: it computes some rows again, whose sums nobody reads.
struct TiledRows {
  int64_t rows;
  int64_t tiles = (rows + kMaxTileRows - 1) / kMaxTileRows;
  int64_t height = (rows + tiles - 1) / tiles;

  int64_t First(int64_t tile) const { return tile + 1 < tiles ? tile * height : rows - height; }
  // Where the sums of a row are, if those of a tile follow those of another.
  int64_t SumsOf(int64_t row) const {
    return row < (tiles - 1) * height ? row : row + tiles * height - rows;
  }
};

GODWIT_INLINE void ZeroSums() { ZeroTile<0>(), ZeroTile<1>(), ZeroTile<2>(), ZeroTile<3>(); }

// The accumulators, or the first of them, from sums [height, 16 each] and back; their stride is in
// bytes.
template <int kColumnTiles = 4>
GODWIT_INLINE void LoadSums(const float* sums, int64_t stride = kStepBytes) {
  LoadTile<0>(sums, stride);
  if constexpr (kColumnTiles > 1) LoadTile<1>(sums + 16, stride);
  if constexpr (kColumnTiles > 2) LoadTile<2>(sums + 32, stride);
  if constexpr (kColumnTiles > 3) LoadTile<3>(sums + 48, stride);
}
template <int kColumnTiles = 4>
GODWIT_INLINE void StoreSums(float* sums, int64_t stride = kStepBytes) {
  StoreTile<0>(sums, stride);
  if constexpr (kColumnTiles > 1) StoreTile<1>(sums + 16, stride);
  if constexpr (kColumnTiles > 2) StoreTile<2>(sums + 32, stride);
  if constexpr (kColumnTiles > 3) StoreTile<3>(sums + 48, stride);
}

GODWIT_INLINE void FetchLines(const uint8_t* ahead, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += kTileBytes) {
    __builtin_prefetch(ahead + byte, /*for writing=*/0, 2);
  }
}

// A section of a tile of rows; of its columns there may be fewer tiles than accumulators. Strides
// are in bytes. fetch() is called after each of four products: all at once would keep its loads
// waiting.
template <class Product, int kColumnTiles = 4, class Fetch>
GODWIT_INLINE void AddSection(const void* a, int64_t a_stride, const void* columns,
                              int64_t column_stride, Fetch& fetch) {
  const auto* w = static_cast<const uint8_t*>(columns);
  LoadTile<kRowTile>(a, a_stride);
  LoadTile<5>(w, column_stride);
  Product::template Add<0, 5>();
  fetch();
  if constexpr (kColumnTiles > 1) {
    LoadTile<6>(w + kTileBytes, column_stride);
    Product::template Add<1, 6>();
  }
  fetch();
  if constexpr (kColumnTiles > 2) {
    LoadTile<7>(w + 2 * kTileBytes, column_stride);
    Product::template Add<2, 7>();
  }
  fetch();
  if constexpr (kColumnTiles > 3) {
    LoadTile<5>(w + 3 * kTileBytes, column_stride);
    Product::template Add<3, 5>();
  }
  fetch();
}

}  // namespace
}  // namespace godwit::kernels
