// KvPool: memory for cached keys and values, within a budget of bytes. It has pages of one size
// with counted references, carved from large slabs on large pages, or from a file (kv_file.h). It
// is the one place that refuses a growing cache, and that knows where a page is.
//
// Thread-safe. A slab takes memory as its pages are first written. It gives all of it back when
// none of its pages is in use and another slab stands empty.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kv/kv_budget.h"
#include "kv/kv_file.h"
#include "kv/snapshot.h"
#include "kv/state_pool.h"
#include "ops/kv_layout.h"
#include "tensor/buffer.h"
#include "tensor/page_data.h"

namespace godwit {

class KvPool {
 public:
  using PageId = uint32_t;
  // The id of a place without a page in a list of pages.
  static constexpr PageId kNoPage = UINT32_MAX;

  // budget: null for one that ends where the machine's memory does. Throws Error(kUnsupported) for
  // heads larger than kMaxHeadDim.
  explicit KvPool(const KvLayout& layout, std::shared_ptr<KvBudget> budget = nullptr);
  // Makes a pool of pages in a file, within the file's budget.
  KvPool(const KvLayout& layout, std::shared_ptr<KvFile> file);
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  const KvLayout& layout() const { return layout_; }
  const KvBudget& budget() const { return *budget_; }
  // The file of the pages; null: all are in memory.
  KvFile* file() const { return file_.get(); }
  // The pool in memory of a pool in a file. It holds data that is derived from pages and read so
  // often that it must stay in memory.
  const std::shared_ptr<KvPool>& in_memory() const { return in_memory_; }

  // The pages for states of recurrent layers, in memory; null: the layout has none.
  const std::shared_ptr<StatePool>& states() const {
    return in_memory_ ? in_memory_->states() : states_;
  }

  // Takes pages with one reference each. data: the place of each page, 64-byte aligned,
  // page_bytes() of old contents. Throws Error(kMemory) with the numbers, and takes none, if the
  // budget or the machine has no memory for all of them.
  void Take(std::span<PageId> ids, std::span<PageData> data);
  // Takes pages that lie in a snapshot, and stay there: its tiles [begin, end), of all layers,
  // [tiles, layers]. They must not be written (IsShared). Throws as Take does.
  void Restore(const std::shared_ptr<const Snapshot>& snapshot, int64_t begin, int64_t end,
               std::span<PageId> ids, std::span<PageData> data);
  // Throws what Take would throw now for so many pages.
  void Require(int64_t pages) const;
  // Adds a reference to each page.
  void Share(std::span<const PageId> ids);
  // Removes a reference from each page; the last one frees the page.
  void Release(std::span<const PageId> ids) noexcept;
  // Whether the page has another reference, or lies in a snapshot.
  bool IsShared(PageId id) const;

  int64_t pages_in_use() const;

  // Reads pages. BeginTurn: pages read after it stay in memory until the next turn. WillRead: bytes
  // [begin, end) of these pages are to be read; returns how many come from the file. Throws
  // DamagedSnapshot for pages of a snapshot that changed.
  void BeginTurn() const {
    if (file_) file_->BeginTurn();
  }
  int64_t WillRead(std::span<const PageId> ids, int64_t begin, int64_t end) const;
  // The bytes of these pages that need not come from a disk.
  int64_t BytesInMemory(std::span<const PageId> ids) const;

 private:
  struct Slab {
    // The slab's memory: one of these three, or none if it was given back.
    Buffer memory;
    std::unique_ptr<FilePages> file;
    std::shared_ptr<const Snapshot> snapshot;
    int64_t first_page = 0;  // of the snapshot
    std::vector<uint32_t> references;
    std::vector<uint32_t> free;  // slots, the next to be taken last

    PageData data() const { return file ? file->data() : PageData(memory.data()); }
  };

  struct SnapshotPages {
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<int64_t> pages;
  };

  // Functions that need the mutex.
  void RequireSlabs(int64_t pages) const;
  PageId TakeOne();
  void FreeSlot(PageId id) noexcept;
  size_t AddSlab();
  size_t SlabWithout();
  void FreeSlab(size_t index) noexcept;
  Slab& SlabOf(PageId id) { return slabs_[id / pages_per_slab_]; }
  int64_t slab_bytes() const { return int64_t{pages_per_slab_} * layout_.page_bytes(); }
  std::vector<KvFile::Page*> FilePagesOf(std::span<const PageId> ids) const;
  std::vector<SnapshotPages> SnapshotPagesOf(std::span<const PageId> ids) const;
  uint32_t& References(PageId id) { return SlabOf(id).references[id % pages_per_slab_]; }

  KvLayout layout_;
  std::shared_ptr<KvFile> file_;
  std::shared_ptr<KvPool> in_memory_;
  std::shared_ptr<KvBudget> budget_;
  std::shared_ptr<StatePool> states_;
  uint32_t pages_per_slab_;
  mutable std::mutex mutex_;
  std::vector<Slab> slabs_;
  size_t first_with_free_page_ = 0;  // no slab before it has a free page
  size_t empty_slabs_ = 0;           // slabs that hold memory and no page in use
  int64_t in_use_ = 0;               // pages in use, except those in snapshots
  int64_t restored_ = 0;             // pages in use in snapshots
};

}  // namespace godwit
