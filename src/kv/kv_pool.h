// Memory for cached keys and values: pages of one size with counted references, carved from large
// slabs on large pages, or from a file (kv_file.h), within a budget of bytes. The one place that
// says no to a growing cache, and that knows where a page is.
//
// Thread-safe. A slab takes memory as its pages are first written, and gives all of it back when
// none of its pages is in use and another slab stands empty.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kv/kv_budget.h"
#include "kv/kv_file.h"
#include "kv/kv_layout.h"
#include "kv/snapshot.h"
#include "tensor/buffer.h"

namespace godwit {

class KvPool {
 public:
  using PageId = uint32_t;
  // In a list of pages: a place without one.
  static constexpr PageId kNoPage = UINT32_MAX;
  struct Page {
    PageId id;
    std::byte* data;  // 64-byte aligned, page_bytes() of what was there before
  };

  // budget: null for one that ends where the machine's memory does. Throws Error(kUnsupported) for
  // heads larger than kernels::kMaxHeadDim.
  explicit KvPool(const KvLayout& layout, std::shared_ptr<KvBudget> budget = nullptr);
  // Pages in a file, within its budget.
  KvPool(const KvLayout& layout, std::shared_ptr<KvFile> file);
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  const KvLayout& layout() const { return layout_; }
  const KvBudget& budget() const { return *budget_; }
  // Null: all is in memory.
  KvFile* file() const { return file_.get(); }
  // Of a file: for what is derived from its pages and read so often that it is to stay in memory.
  const std::shared_ptr<KvPool>& in_memory() const { return in_memory_; }

  // Pages with one reference each: ids, and as many pointers to the memory, 64-byte aligned,
  // page_bytes() of what was there before. Throws Error(kMemory) with the numbers, and takes none,
  // if the budget or the machine has no room for all of them.
  void Take(std::span<PageId> ids, std::span<std::byte*> data);
  // Pages that lie in a snapshot, and stay there: tiles [begin, end) of those that it holds, of all
  // layers, [tiles, layers]. Nobody is to write into them (IsShared). Throws as Take does.
  void TakeUp(const std::shared_ptr<const Snapshot>& snapshot, int64_t begin, int64_t end,
              std::span<PageId> ids, std::span<std::byte*> data);
  // Throws what Take would throw now for so many.
  void Require(int64_t pages) const;
  // Another reference to each.
  void Share(std::span<const PageId> ids);
  // A reference less; the last one frees the page.
  void Release(std::span<const PageId> ids) noexcept;
  // Whether somebody else holds the page, too, or it lies in a snapshot.
  bool IsShared(PageId id) const;

  int64_t pages_in_use() const;

  // What is read together begins; bytes [begin, end) of pages are to be read, and so many come from
  // the file. Throws DamagedSnapshot for pages of one that are not what they were.
  void BeginTurn() const {
    if (file_) file_->BeginTurn();
  }
  int64_t WillRead(std::span<const PageId> ids, int64_t begin, int64_t end) const;
  // Of the pages, those that need not come from a disk.
  int64_t BytesInMemory(std::span<const PageId> ids) const;

 private:
  struct Slab {
    // One of them, or none: given back.
    Buffer memory;
    std::unique_ptr<FilePages> file;
    std::shared_ptr<const Snapshot> snapshot;
    int64_t first_page = 0;  // of the snapshot
    std::vector<uint32_t> references;
    std::vector<uint32_t> free;  // slots, the next to be taken last

    std::byte* data() const { return file ? file->data() : memory.data(); }
  };

  struct SnapshotPages {
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<int64_t> pages;
  };

  // All under the mutex.
  void RequireSlabs(int64_t pages) const;
  PageId TakeOne();
  void FreeSlot(PageId id) noexcept;
  size_t AddSlab();
  size_t SlabWithout();
  void GiveUp(size_t index) noexcept;
  Slab& SlabOf(PageId id) { return slabs_[static_cast<size_t>(id / pages_per_slab_)]; }
  int64_t slab_bytes() const { return int64_t{pages_per_slab_} * layout_.page_bytes(); }
  std::vector<KvFile::Page*> FilePagesOf(std::span<const PageId> ids) const;
  std::vector<SnapshotPages> SnapshotPagesOf(std::span<const PageId> ids) const;
  uint32_t& References(PageId id) { return SlabOf(id).references[id % pages_per_slab_]; }

  KvLayout layout_;
  std::shared_ptr<KvFile> file_;
  std::shared_ptr<KvPool> in_memory_;
  std::shared_ptr<KvBudget> budget_;
  uint32_t pages_per_slab_;
  mutable std::mutex mutex_;
  std::vector<Slab> slabs_;
  size_t first_with_room_ = 0;  // no slab before it has a free page
  size_t empty_slabs_ = 0;      // that hold memory and no page in use
  int64_t in_use_ = 0;          // but those in snapshots
  int64_t taken_up_ = 0;        // those
};

}  // namespace godwit
