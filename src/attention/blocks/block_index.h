// BlockIndex: the representatives of the blocks of one text, for every KV head of some layers; an
// index of what a KvCache holds. A block's representatives are a function of its keys alone,
// computed on demand.
//
// They lie in pages of the cache's own pool, as operations make and read them (index_view.h). One
// budget therefore holds for both, and forks share common pages. Signs have the means of their
// tiles in pages beside them. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kv/kv_pool.h"
#include "ops/attention.h"
#include "ops/blocks/index_view.h"
#include "ops/blocks/represent_blocks.h"
#include "ops/exec.h"

namespace godwit {

class BlockIndex {
 public:
  // layers: the indexed layers, which have equal heads. Others would take their share of memory,
  // too.
  BlockIndex(const ops::BlockShape& shape, std::shared_ptr<KvPool> pool,
             std::span<const int64_t> layers);
  // Copies the index for a text that goes on from the same tokens.
  BlockIndex(const BlockIndex& other);
  BlockIndex& operator=(const BlockIndex&) = delete;
  ~BlockIndex();

  const ops::BlockShape& shape() const { return shape_; }
  // The representatives of a layer. Valid until the next call that is not const.
  ops::IndexView View(int64_t layer) const { return ViewAt(RankOf(layer)); }
  int64_t bytes() const {
    return std::ssize(ids_) * pool_->layout().page_bytes() + (means_ ? means_->bytes() : 0);
  }
  // The bytes that so many blocks take.
  int64_t BytesFor(int64_t blocks) const;
  // The bytes that scoring so many blocks of a layer reads.
  int64_t ReadBytes(int64_t blocks) const { return ops::ReadBytes(ViewAt(0), blocks); }

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
            const ops::ImportantTokens& important = {});
  // Does the same for an index of groups: each is a block of several blocks of a finer index, which
  // holds them. The groups' representatives come from those of their blocks (ops::RepresentGroups).
  void FillGroups(const Exec& exec, int64_t layer, const BlockIndex& finer, int64_t groups,
                  int64_t lasting);

  // The number of blocks that need not be computed again in any layer, and their data. Restore
  // takes this data in an index of the same shape, pages and layers.
  int64_t lasting() const;
  std::vector<std::span<const std::byte>> parts() const;
  // Fills an empty index with the first `blocks`, all of which `parts` must have. False, with the
  // index as it was: the parts have another size or too few blocks. Throws Error(kMemory).
  bool Restore(std::span<const std::span<const std::byte>> parts, int64_t blocks);

 private:
  // Missing pages: shared pages that are to be written, which are copied from `first` on, and pages
  // to be added.
  struct Growth {
    size_t first = 0, copied = 0, added = 0;
    size_t pages() const { return copied + added; }
  };
  Growth GrowthTo(int64_t blocks) const;
  void Grow(const Growth& growth, std::span<KvPool::PageId> ids, std::span<PageData> data);
  using Parts = std::span<const std::span<const std::byte>>;
  // The last parts of parts(), which belong to the means.
  static Parts MeansOf(Parts parts);
  bool CanRestore(Parts parts, int64_t blocks) const;
  void CopyParts(Parts parts, int64_t blocks);

  int64_t page_of(int64_t block) const;  // the page of the pool in which its representatives begin
  size_t EntriesFor(int64_t blocks) const;
  size_t RankOf(int64_t layer) const;
  ops::IndexView ViewAt(size_t rank) const;
  ops::IndexPages PagesAt(size_t rank) const;

  ops::BlockShape shape_;
  std::shared_ptr<KvPool> pool_;
  KvLayout heads_;               // of an indexed layer
  int64_t width_;                // of a representative
  int64_t tile_bytes_;           // of kTileTokens representatives of a head
  int64_t tiles_per_page_;       // of a head
  std::vector<int64_t> rank_;    // of each layer among the indexed ones; -1: not indexed
  std::vector<int64_t> filled_;  // blocks, of each indexed layer
  // [indexed layers, KV heads, 3, head_dim], ops::SignLevels; operations write them.
  mutable std::vector<float> levels_;
  std::unique_ptr<BlockIndex> means_;  // for kSign, a block for each of its tiles
  std::vector<KvPool::PageId> ids_;    // [pages, indexed layers]
  std::vector<PageData> data_;
};

}  // namespace godwit
