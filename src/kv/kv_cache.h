// The cached keys and values of one text: for every layer a table of the pages (kv_pool.h) in which
// its positions lie. Storage, without an opinion on who sees what.
//
// Keys lie rotated at their position in the text, so that all who read a text can share its pages.
// Position p lies in tile p / kTileTokens at slot p % kTileTokens, whatever came with it. A row is
// rounded or quantized once, on its own, when it is written. Pages are never moved. A fork shares
// them; the one that a fork is to write into is copied before. Not thread-safe, but for Fork and
// the destructor, which other caches need not know of.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kv/kv_pool.h"
#include "ops/attention.h"
#include "ops/exec.h"

namespace godwit {

class KvCache {
 public:
  explicit KvCache(std::shared_ptr<KvPool> pool);
  ~KvCache();
  KvCache(KvCache&& other) noexcept;
  KvCache& operator=(KvCache other) noexcept;

  const KvPool& pool() const { return *pool_; }
  const std::shared_ptr<KvPool>& shared_pool() const { return pool_; }
  // Where that is to lie which is derived from the keys.
  const std::shared_ptr<KvPool>& pool_in_memory() const {
    return pool_->in_memory() ? pool_->in_memory() : pool_;
  }
  const KvLayout& layout() const { return pool_->layout(); }

  // The same text; what one of the two appends or forgets later, the other does not see.
  KvCache Fork() const;

  // Goes on as another cache of its text, which has dropped nothing, has gone on since: shares what
  // of its pages it has not yet. Returns up to where it had them.
  int64_t GoOnAs(const KvCache& other);

  int64_t length() const { return length_; }
  // Positions of which nothing is left, whole tiles.
  ops::KvRange dropped() const { return dropped_; }
  // Held in memory or in a file, also by pages that other caches share.
  int64_t bytes() const {
    return (std::ssize(ids_) - skipped_tiles_ * layout().layers) * layout().page_bytes();
  }

  // Makes room to append `tokens`, in pages of its own. Throws Error(kMemory) with everything as it
  // was.
  void Reserve(int64_t tokens);

  // For the positions from `begin` to the end that were skipped, and are to come from elsewhere
  // (Page), whole tiles. Likewise.
  void ReserveSkipped(int64_t begin);
  // All KV heads of a tile, in reserved room.
  std::span<std::byte> Page(int64_t layer, int64_t tile) const;

  // With KvLayout::centred: the centre of a tile's keys [head_dim], or empty for zeros, in reserved
  // room, before any of them is written. A function of the tile's place, so that it may be written
  // again. Rounded to bf16.
  void WriteCentre(const kernels::KernelTable& kernels, int64_t layer, int64_t head, int64_t tile,
                   std::span<const float> centre) const;

  // One row of one KV head at a position in reserved room: k (rotated) and v [head_dim]; v null
  // with KvLayout::values_in_keys. Several threads may write different rows, best of different
  // tiles. Throws Error(kUnsupported) for a number beyond the range of f16, where that is the type;
  // what is not finite already stays so.
  void Write(const kernels::KernelTable& kernels, int64_t layer, int64_t head, int64_t position,
             const float* k, const float* v) const;

  // The rows written at length(), length() + 1, ... belong to the text from now on.
  void Append(int64_t tokens) { length_ += tokens; }
  // The text goes on at `position`: what lies between is held by others, and nobody looks at it
  // here. Its whole tiles take no pages. Not of a text that has dropped any.
  void Skip(int64_t position);
  // The text goes on, from the end of a whole tile of its own, as a snapshot has it, up to the end
  // of one of those. Its pages are shared with all who take it up, and are looked at only once
  // WillRead has proved them. Throws Error(kMemory) with everything as it was.
  void TakeUp(const std::shared_ptr<const Snapshot>& snapshot, int64_t end);
  // Forgets the positions >= length, which does not lie within dropped().
  void Truncate(int64_t length);
  // Gives back the whole tiles among these positions, which join or continue dropped().
  void Drop(ops::KvRange range);

  // Valid until the next call that is not const.
  ops::KvView View(int64_t layer) const;

  // What will be looked at in a layer, of all KV heads or of [first, last): what of it lies in the
  // pool's file begins to be read from there, and what in a snapshot is proved. Positions of which
  // nothing is held are no matter. Throws DamagedSnapshot.
  void WillRead(int64_t layer, ops::KvRange positions) const;
  void WillRead(int64_t layer, std::span<const ops::TilePart> parts, int64_t first_head,
                int64_t last_head) const;
  // What came from there, since the text began.
  int64_t file_read_bytes() const { return file_read_bytes_; }
  // Of bytes(), what need not come from there now.
  int64_t BytesInMemory() const { return pool_->BytesInMemory(ids_); }

 private:
  int64_t tiles() const { return std::ssize(ids_) / layout().layers; }  // that are held
  // Where in the table a tile is listed.
  int64_t Slot(int64_t tile) const;
  KvPool::PageId PageOf(int64_t layer, int64_t tile) const;
  // Of a text of that length, without those that were dropped.
  int64_t HeldTiles(int64_t length) const;
  void CountSkipped();
  // Of a layer: tiles [begin, end) of which some may lie in a file, or in a snapshot unproved.
  ops::KvRange Announced(int64_t layer, ops::KvRange positions) const;
  void Grow(int64_t tiles);
  void Shrink(int64_t tiles);
  void OwnTail();

  std::shared_ptr<KvPool> pool_;
  int64_t length_ = 0;
  ops::KvRange dropped_{0, 0};
  int64_t skipped_tiles_ = 0;
  // [tiles, layers], in order, without those that were dropped; no pages where it was skipped.
  std::vector<KvPool::PageId> ids_;
  std::vector<std::byte*> data_;
  mutable int64_t file_read_bytes_ = 0;
  // Of snapshots: the tiles before this one may lie in some; of each layer, the first tiles that
  // are proved.
  int64_t taken_up_tiles_ = 0;
  mutable std::vector<int64_t> proved_tiles_;
};

}  // namespace godwit
