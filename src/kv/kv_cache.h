// KvCache: the cached keys and values of one text. For every layer it has a table of the pages
// (kv_pool.h) in which the positions lie. It is storage, without an opinion on which query sees
// which key.
//
// Keys lie rotated at their position in the text, so that all readers of a text can share its
// pages. Position p lies in tile p / kTileTokens at slot p % kTileTokens, whatever tokens came with
// it. A row is rounded or quantized once, on its own, when it is written. Pages are never moved. A
// fork shares them; the page that a fork is about to write into is copied first. Not thread-safe,
// except Fork and the destructor, which other caches need not know of.
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
  // The pool for data that is derived from keys.
  const std::shared_ptr<KvPool>& pool_in_memory() const {
    return pool_->in_memory() ? pool_->in_memory() : pool_;
  }
  const KvLayout& layout() const { return pool_->layout(); }

  // A fork: the same text. Positions that one of the two appends or forgets later do not change the
  // other.
  KvCache Fork() const;

  // Goes on as another cache of its text, which has gone on since and has dropped nothing. Shares
  // the pages of that cache that this one does not have yet. Returns the position up to which it
  // had them.
  int64_t ContinueAs(const KvCache& other);

  int64_t length() const { return length_; }
  // Positions of which nothing is left, in whole tiles.
  ops::KvRange dropped() const { return dropped_; }
  // Positions from `begin` to the end that other hosts hold, in whole tiles, ascending.
  std::vector<ops::KvRange> SkippedFrom(int64_t begin) const;
  // The bytes held in memory or in a file, including pages that other caches share.
  int64_t bytes() const {
    return (std::ssize(ids_) - skipped_tiles_ * layout().pages()) * layout().page_bytes();
  }

  // Reserves pages of its own to append `tokens`. Throws Error(kMemory) with everything as it was.
  void Reserve(int64_t tokens);

  // Reserves pages for the skipped positions from `begin` to the end, in whole tiles, which are to
  // come from elsewhere (View). Throws Error(kMemory) with everything as it was.
  void ReserveSkipped(int64_t begin);

  // Appends the rows written at length(), length() + 1, ... to the text.
  void Append(int64_t tokens) { length_ += tokens; }
  // Moves the text's end to `position`. Other hosts hold the positions between, and no query looks
  // at them here. Whole tiles of them take no pages. Not for a text that has dropped any.
  void Skip(int64_t position);
  // Moves the text's end to the end of its last tile. The rows between are never looked at.
  void FillTile();
  // Extends the text by the tiles of a snapshot up to `end`, the end of one of those. The text ends
  // with a whole tile of its own before. All caches that take up a snapshot share its pages. They
  // may be looked at only once WillRead has verified them. Throws Error(kMemory) with everything as
  // it was.
  void Restore(const std::shared_ptr<const Snapshot>& snapshot, int64_t end);
  // Forgets the positions >= length, which does not lie within dropped().
  void Truncate(int64_t length);
  // Gives back the whole tiles in `range`, which joins or continues dropped().
  void Drop(ops::KvRange range);

  // The keys and values of a layer, for operations that read or write them (ops/store_keys.h).
  // Several threads may write different rows, at positions that are reserved and lie behind the
  // text's end. Valid until the next call that is not const.
  ops::KvView View(int64_t layer) const;
  // The index keys of a layer (KvLayout::index_dim), likewise.
  ops::KvView IndexView(int64_t layer) const;
  // A page of a tile that is held, by its number among the pages of a tile. Valid as a view is.
  PageData PageAt(int64_t page, int64_t tile) const;

  // Announces which positions of a layer will be looked at, of all KV heads or of [first_head,
  // last_head). Pages in the pool's file begin to be read, and pages in a snapshot are verified.
  // Positions that are not held do not matter. Throws DamagedSnapshot.
  void WillRead(int64_t layer, ops::KvRange positions) const;
  void WillRead(int64_t layer, std::span<const ops::TilePart> parts, int64_t first_head,
                int64_t last_head) const;
  // The same of a layer's index keys, and of all that lies in pages.
  void WillReadIndex(int64_t layer, ops::KvRange positions) const;
  void WillReadAll(ops::KvRange positions) const;
  // The bytes that came from the pool's file since the text began.
  int64_t file_read_bytes() const { return file_read_bytes_; }
  // The part of bytes() that need not come from the pool's file now.
  int64_t BytesInMemory() const { return pool_->BytesInMemory(ids_); }

 private:
  int64_t tiles() const { return std::ssize(ids_) / layout().pages(); }  // tiles that are held
  // The place of a tile in the table of pages.
  int64_t Slot(int64_t tile) const;
  // The page of a tile, by its number among the pages of a tile.
  KvPool::PageId IdAt(int64_t page, int64_t tile) const;
  // The number of tiles of a text of that length, without those that were dropped.
  int64_t HeldTiles(int64_t length) const;
  void CountSkipped();
  ops::KvPages PagesOf(int64_t layer) const;
  ops::KvPages PagesAt(int64_t page, int64_t offset_bytes) const;
  // The tiles [begin, end) of a page among these positions that may lie in a file, or in a snapshot
  // unverified.
  ops::KvRange Announced(int64_t page, ops::KvRange positions) const;
  void WillReadPage(int64_t page, ops::KvRange positions) const;
  void Grow(int64_t tiles);
  void Shrink(int64_t tiles);
  void CopySharedTail();
  // Makes stamps for tiles that have none, and drops those of tiles that are gone.
  void StampTiles();
  // Gives the last tile of the text another stamp, if it lacks rows.
  void StampTail();

  std::shared_ptr<KvPool> pool_;
  int64_t length_ = 0;
  ops::KvRange dropped_{0, 0};
  int64_t skipped_tiles_ = 0;
  // Pages [tiles, layout().pages()], in order, without dropped tiles; kNoPage for skipped ones.
  std::vector<KvPool::PageId> ids_;
  std::vector<PageData> data_;
  // A stamp for each tile that is held, unlike that of any other tile of the process with other
  // rows of its text. Forks share those of whole tiles. A tile that loses rows, or that a fork may
  // go on with, gets another one.
  std::vector<uint64_t> stamps_;
  mutable int64_t file_read_bytes_ = 0;
  // The state of pages in snapshots. Tiles before restored_tiles_ may lie in some; verified_tiles_
  // counts, for each page of a tile, the first tiles that are verified.
  int64_t restored_tiles_ = 0;
  mutable std::vector<int64_t> verified_tiles_;
};

}  // namespace godwit
