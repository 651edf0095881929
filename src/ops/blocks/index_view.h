// IndexView: the representatives of the blocks of one text in one layer, as operations make and
// read them.
//
// They lie 64 to a tile, as int8 keys do or as signs (kernel_table.h, ScoreTileArgs,
// ScoreSignsArgs), for every KV head of a page.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/blocks/representatives.h"
#include "ops/kv_layout.h"
#include "tensor/page_data.h"

namespace godwit::ops {

// Blocks are cut by text position, and into parts with a representative each.
struct BlockShape {
  RepresentativeType type = RepresentativeType::kMeanStd;
  int64_t tokens = 64;  // of a block: whole tiles, or a power of two below kTileTokens
  // Parts of a block: a power of two, at most kTileTokens, that divides its tokens; for kSign,
  // `tokens`.
  int64_t parts = 4;

  int64_t part_tokens() const { return tokens / parts; }
  int64_t tiles() const { return tokens / kTileTokens; }
  bool signs() const { return type == RepresentativeType::kSign; }
  // For kSign: the number of first blocks from which the levels of a head's keys are learnt
  // (SignLevels). No fewer blocks are ever represented.
  int64_t learnt_blocks = 0;
};

// The parts of a block that are scored. For signs they are its tiles, each scored by its mean and
// as high above that as its highest key.
inline int64_t ScoredParts(const BlockShape& shape) {
  return shape.signs() ? shape.tiles() : shape.parts;
}

// Bytes of kTileTokens representatives of a head: rows of `width` int8 with a scale each, or signs
// of keys. A head's part of a page must hold them.
int64_t VectorTileBytes(int64_t width);
int64_t SignTileBytes(int64_t head_dim);

// The kTileTokens representatives of neighbouring parts, for one KV head.
struct RepresentativeTile {
  const uint8_t* vectors;
  const float* scales;
};

// Signs of the keys of `count` tiles of one KV head, side by side.
struct SignTiles {
  const uint8_t* signs = nullptr;
  int64_t count = 0;
};

// The tiles of one layer, in pages.
struct IndexPages {
  const PageData* pages = nullptr;  // page i is pages[i * page_stride]
  int64_t page_stride = 0;
  int64_t head_bytes = 0;      // from one KV head's part of a page to the next
  int64_t tile_bytes = 0;      // of kTileTokens parts of a head
  int64_t tiles_per_page = 1;  // of a head
  int64_t width = 0;           // of a representative

  std::byte* At(int64_t head, int64_t i) const {
    return HostPointer(pages[i / tiles_per_page * page_stride]) + head * head_bytes +
           i % tiles_per_page * tile_bytes;
  }
  // The representatives of the parts from i * kTileTokens on.
  RepresentativeTile Vectors(int64_t head, int64_t i) const;
  // The signs from the keys of tile i on.
  SignTiles Signs(int64_t head, int64_t i) const {
    return {.signs = reinterpret_cast<const uint8_t*>(At(head, i)),
            .count = tiles_per_page - i % tiles_per_page};
  }
};

struct IndexView {
  BlockShape shape;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  IndexPages parts;  // the representatives of parts, or signs
  // Only for kSign: the offsets of tiles, each a part, in units of the levels (RepresentSigns), and
  // the levels [kv_heads, 3, head_dim] for which signs stand.
  IndexPages means = {};
  float* levels = nullptr;

  SignLevels Levels(int64_t head) const { return LevelsIn(levels + head * 3 * head_dim, head_dim); }
};

// The bytes that scoring so many blocks reads.
int64_t ReadBytes(const IndexView& index, int64_t blocks);

}  // namespace godwit::ops
