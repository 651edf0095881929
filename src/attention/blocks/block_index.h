// BlockIndex: the representatives of the blocks of one text, for every KV head of some layers; an
// index of what a KvCache holds. A block's representatives are a function of its keys alone,
// computed on demand.
//
// They lie 64 to a tile, as int8 keys do or as signs (kernel_table.h, ScoreTileArgs,
// ScoreSignsArgs), in pages of the cache's own pool. One budget therefore holds for both, and forks
// share common pages. Signs have the means of their tiles in pages beside them. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "attention/blocks/representatives.h"
#include "kv/kv_pool.h"
#include "ops/attention.h"
#include "ops/exec.h"

namespace godwit {

// Blocks are cut by text position, and into parts with a representative each.
struct BlockShape {
  RepresentativeType type = RepresentativeType::kMeanStd;
  int64_t tokens = 64;  // of a block, whole tiles
  // Parts of a block: a power of two, at most kTileTokens, that divides its tokens; for kSign,
  // `tokens`.
  int64_t parts = 4;

  int64_t part_tokens() const { return tokens / parts; }
  bool signs() const { return type == RepresentativeType::kSign; }
  // For kSign: the number of first blocks from which the levels of a head's keys are learnt
  // (SignLevels). Fill is not asked for fewer.
  int64_t learnt_blocks = 0;
};

// The tokens of a block whose keys stand for it with kDynamic, for a KV head, by their places in
// the block. They are as many as the block has parts, in ascending order. None: as many tokens at
// equal distances are taken.
using ImportantTokens = std::function<std::span<const uint16_t>(int64_t head, int64_t block)>;

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

class BlockIndex {
 public:
  // Bytes of kTileTokens representatives of a head that are rows of `width` int8. A head's part of
  // a page must hold them.
  static int64_t VectorTileBytes(int64_t width);

  // layers: the indexed layers. Others would take their share of memory, too.
  BlockIndex(const BlockShape& shape, std::shared_ptr<KvPool> pool,
             std::span<const int64_t> layers);
  // Copies the index for a text that goes on from the same tokens.
  BlockIndex(const BlockIndex& other);
  BlockIndex& operator=(const BlockIndex&) = delete;
  ~BlockIndex();

  const BlockShape& shape() const { return shape_; }
  int64_t width() const { return width_; }  // of a representative
  int64_t bytes() const {
    return std::ssize(ids_) * pool_->layout().page_bytes() + (means_ ? means_->bytes() : 0);
  }
  // The bytes that so many blocks take.
  int64_t BytesFor(int64_t blocks) const;
  // The bytes that scoring so many blocks of a layer reads.
  int64_t ReadBytes(int64_t blocks) const;

  // Blocks of a layer that need not be made again.
  int64_t filled(int64_t layer) const { return filled_[RankOf(layer)]; }

  // Forgets the blocks from `blocks` on, whose keys may change soon, and gives their memory back.
  void Truncate(int64_t blocks);
  // Reserves memory for so many blocks, to be written by Fill. Throws Error(kMemory) with the index
  // as it was.
  void Reserve(int64_t blocks);
  // Computes the missing ones of the first `blocks` of a layer, on all cores. Blocks from `lasting`
  // on are not remembered: their keys do not belong to the text yet. important: for kDynamic, the
  // tokens of the blocks that are computed.
  void Fill(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t blocks, int64_t lasting,
            const ImportantTokens& important = {});
  // Does the same for an index of groups: each is a block of several blocks of a finer index, which
  // holds them. The groups' representatives come from those of their blocks (represent_group.h).
  void FillGroups(const Exec& exec, int64_t layer, const BlockIndex& finer, int64_t groups,
                  int64_t lasting);

  // The number of blocks that need not be computed again in any layer, and their data. Restore
  // takes this data in an index of the same shape, pages and layers.
  int64_t lasting() const;
  std::vector<std::span<const std::byte>> parts() const;
  // Fills an empty index with the first `blocks`, all of which `parts` must have. False, with the
  // index as it was: the parts have another size or too few blocks. Throws Error(kMemory).
  bool Restore(std::span<const std::span<const std::byte>> parts, int64_t blocks);

  // The tile of the parts from i * kTileTokens on.
  RepresentativeTile Tile(int64_t layer, int64_t head, int64_t i) const;
  // The signs from the keys of tile i on.
  SignTiles Signs(int64_t layer, int64_t head, int64_t i) const;
  // The levels that the signs of a head stand for.
  SignLevels Levels(int64_t layer, int64_t head) const;
  // The offsets of tiles for kSign, each a part, in units of the levels (RepresentSigns).
  const BlockIndex& means() const { return *means_; }

 private:
  // Missing pages: shared pages that are to be written, which are copied from `first` on, and pages
  // to be added.
  struct Growth {
    size_t first = 0, copied = 0, added = 0;
    size_t pages() const { return copied + added; }
  };
  Growth GrowthTo(int64_t blocks) const;
  void Grow(const Growth& growth, std::span<KvPool::PageId> ids, std::span<std::byte*> data);
  using Parts = std::span<const std::span<const std::byte>>;
  // The last parts of parts(), which belong to the means.
  static Parts MeansOf(Parts parts);
  bool CanRestore(Parts parts, int64_t blocks) const;
  void CopyParts(Parts parts, int64_t blocks);

  int64_t tiles() const { return shape_.tokens / kernels::kTileTokens; }  // of a block
  int64_t page_of(int64_t block) const;  // the page of the pool in which its representatives begin
  size_t EntriesFor(int64_t blocks) const;
  size_t RankOf(int64_t layer) const;
  std::byte* TileData(int64_t layer, int64_t head, int64_t i) const;
  int64_t tile_bytes() const;  // of kTileTokens representatives of a head
  // Computes the missing representatives of tile i, up to `blocks`.
  void FillTile(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t head, int64_t i,
                int64_t blocks, const ImportantTokens& important, float* scratch) const;
  size_t LevelsAt(int64_t layer, int64_t head) const;
  void Represent(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t head,
                 int64_t block, const ImportantTokens& important, float* scratch) const;
  // Writes a representative, with zeros to kQuad.
  void Put(int64_t layer, int64_t head, int64_t part, const int8_t* row, float scale) const;

  BlockShape shape_;
  std::shared_ptr<KvPool> pool_;
  int64_t width_;
  int64_t tile_bytes_;                 // of kTileTokens representatives of a head
  int64_t tiles_per_page_;             // of a head
  std::vector<int64_t> rank_;          // of each layer among the indexed ones; -1: not indexed
  std::vector<int64_t> filled_;        // blocks, of each indexed layer
  std::vector<float> levels_;          // [indexed layers, KV heads, 3, head_dim], SignLevels
  std::unique_ptr<BlockIndex> means_;  // for kSign, a block for each of its tiles
  std::vector<KvPool::PageId> ids_;    // [pages, indexed layers]
  std::vector<std::byte*> data_;
};

}  // namespace godwit
