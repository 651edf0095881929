// The representatives of the blocks of one text, for every KV head of some layers: an index of what
// a KvCache holds. A block's are a function of its keys alone, made when somebody asks for them.
//
// They lie 64 to a tile, as int8 keys do or as signs (kernel_table.h, ScoreTileArgs,
// ScoreSignsArgs), in pages of the cache's own pool: one budget holds for both, and forks share
// what they have in common. Signs have the means of their tiles in pages beside them. Not
// thread-safe.
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
  // Of a block, a power of two, at most kTileTokens and dividing its tokens; of kSign, `tokens`.
  int64_t parts = 4;

  int64_t part_tokens() const { return tokens / parts; }
  bool signs() const { return type == RepresentativeType::kSign; }
  // Of signs: the first so many, of which is learnt what they say of a head's keys (SignLevels).
  // Fill is not asked for fewer.
  int64_t learnt_blocks = 0;
};

// The tokens of a block, by their places in it, whose keys stand for it with kDynamic, for a KV
// head: as many as it has parts, in ascending order; none, and so many at equal distances do.
using ImportantTokens = std::function<std::span<const uint16_t>(int64_t head, int64_t block)>;

// kTileTokens representatives of one KV head, those of neighbouring parts.
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
  // Bytes of kTileTokens representatives of a head that are rows of `width` int8, for which a
  // head's part of a page needs room.
  static int64_t VectorTileBytes(int64_t width);

  // layers: those that are indexed. Others would take their share of memory, too.
  BlockIndex(const BlockShape& shape, std::shared_ptr<KvPool> pool,
             std::span<const int64_t> layers);
  // Of a text that goes on from the same tokens.
  BlockIndex(const BlockIndex& other);
  BlockIndex& operator=(const BlockIndex&) = delete;
  ~BlockIndex();

  const BlockShape& shape() const { return shape_; }
  int64_t width() const { return width_; }  // of a representative
  int64_t bytes() const {
    return std::ssize(ids_) * pool_->layout().page_bytes() + (means_ ? means_->bytes() : 0);
  }
  // That so many blocks take.
  int64_t BytesFor(int64_t blocks) const;
  // What scoring so many blocks of a layer reads.
  int64_t ReadBytes(int64_t blocks) const;

  // Blocks of a layer that need not be made again.
  int64_t filled(int64_t layer) const { return filled_[RankOf(layer)]; }

  // Forgets the blocks from there on, whose keys may be others soon, and gives their room back.
  void Truncate(int64_t blocks);
  // Room for so many, to be written by Fill. Throws Error(kMemory) with what is indexed as it was.
  void Reserve(int64_t blocks);
  // Makes what is missing of the first `blocks` of a layer, on all cores. Of those from `lasting`
  // on nothing is remembered: their keys do not belong to the text yet. important: of kDynamic,
  // those of the blocks that are made.
  void Fill(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t blocks, int64_t lasting,
            const ImportantTokens& important = {});
  // The same of an index of groups, blocks of several of a finer one, which holds them: by what
  // stands for those (represent_group.h).
  void FillGroups(const Exec& exec, int64_t layer, const BlockIndex& finer, int64_t groups,
                  int64_t lasting);

  // Of the blocks that need not be made again in any layer: what TakeUp takes, of an index of the
  // same shape, pages and layers.
  int64_t lasting() const;
  std::vector<std::span<const std::byte>> parts() const;
  // Of an empty one: the first `blocks`, all of which those parts have. False, and as it was: they
  // have another size, or these are too few. Throws Error(kMemory).
  bool TakeUp(std::span<const std::span<const std::byte>> parts, int64_t blocks);

  // That of the parts from i * kTileTokens on.
  RepresentativeTile Tile(int64_t layer, int64_t head, int64_t i) const;
  // From those of the keys of tile i on.
  SignTiles Signs(int64_t layer, int64_t head, int64_t i) const;
  // What the signs of a head say.
  SignLevels Levels(int64_t layer, int64_t head) const;
  // Of signs: the offsets of their tiles, a part each, in units of the levels (RepresentSigns).
  const BlockIndex& means() const { return *means_; }

 private:
  // Pages that are missing: those to be written that another text reads, too, which are copied from
  // `first` on, and those to be added.
  struct Growth {
    size_t first = 0, copied = 0, added = 0;
    size_t pages() const { return copied + added; }
  };
  Growth GrowthTo(int64_t blocks) const;
  void Grow(const Growth& growth, std::span<KvPool::PageId> ids, std::span<std::byte*> data);
  using Parts = std::span<const std::span<const std::byte>>;
  // Of parts() those of the means, which come last.
  static Parts MeansOf(Parts parts);
  bool CanTakeUp(Parts parts, int64_t blocks) const;
  void CopyParts(Parts parts, int64_t blocks);

  int64_t tiles() const { return shape_.tokens / kernels::kTileTokens; }  // of a block
  int64_t page_of(int64_t block) const;  // of the pool's, in which its representatives begin
  size_t EntriesFor(int64_t blocks) const;
  size_t RankOf(int64_t layer) const;
  std::byte* TileData(int64_t layer, int64_t head, int64_t i) const;
  int64_t tile_bytes() const;  // of kTileTokens representatives of a head
  // What is missing of tile i, up to `blocks`.
  void FillTile(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t head, int64_t i,
                int64_t blocks, const ImportantTokens& important, float* scratch) const;
  size_t LevelsAt(int64_t layer, int64_t head) const;
  void Represent(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t head,
                 int64_t block, const ImportantTokens& important, float* scratch) const;
  // A representative with zeros to kQuad.
  void Put(int64_t layer, int64_t head, int64_t part, const int8_t* row, float scale) const;

  BlockShape shape_;
  std::shared_ptr<KvPool> pool_;
  int64_t width_;
  int64_t tile_bytes_;                 // of kTileTokens representatives of a head
  int64_t tiles_per_page_;             // of a head
  std::vector<int64_t> rank_;          // of each layer, among those that are indexed; -1: it is not
  std::vector<int64_t> filled_;        // blocks, of each indexed layer
  std::vector<float> levels_;          // [indexed layers, KV heads, 3, head_dim], SignLevels
  std::unique_ptr<BlockIndex> means_;  // of signs, a block for each of their tiles
  std::vector<KvPool::PageId> ids_;    // [pages, indexed layers]
  std::vector<std::byte*> data_;
};

}  // namespace godwit
