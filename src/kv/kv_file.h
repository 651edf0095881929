// KvFile: a file behind the pages of KV caches. Pages that were used last lie in memory, too. The
// others lie on the disk alone, and are read ahead as soon as a caller announces what it will look
// at.
//
// The file is mapped, so a page keeps its address. A reader of a page that is not in memory waits
// for the disk and finds the same bytes: announcing nothing costs time, never bits. Space on the
// disk is taken before it is mapped. A full disk is thus an error where a page is taken, not a
// signal where it is written. The file has lost its name before its first byte is written, and ends
// with the process, whatever ends that. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/open_file.h"
#include "base/system/advice.h"
#include "kv/kv_budget.h"
#include "tensor/page_data.h"

namespace godwit {

class KvFile {
 public:
  // The alignment of pages, so that each comes and goes without its neighbours.
  static constexpr int64_t kAlignment = kMaxPageBytes;

  struct Page {
    std::byte* data;
    int64_t offset;  // in the file
    int64_t bytes;
    int64_t turn = 0;  // the turn in which the page was used last
    // A bit for each block of the page that is in memory, as far as we know: the system may take it
    // away before. A page without bits is not listed.
    uint64_t in_memory = 0;
    std::list<Page*>::iterator place;  // in the list in_memory_

    // The bytes of a block: whole pages of the system, so that a page has at most 64 blocks.
    int64_t block_bytes() const {
      return (bytes + 64 * kAlignment - 1) / (64 * kAlignment) * kAlignment;
    }
    uint64_t Blocks(int64_t begin, int64_t end) const;  // blocks that hold these bytes
    int64_t BytesOf(uint64_t blocks) const;
  };

  // path: a folder, or the name of a file that does not exist yet. bytes: the size to which the
  // file may grow; 0: the free bytes of its disk. memory: the budget of the machine's memory for
  // pages, which other users may share. Throws Error(kIo) that names the path.
  KvFile(const std::filesystem::path& path, int64_t bytes, std::shared_ptr<KvBudget> memory);

  const std::shared_ptr<KvBudget>& budget() const { return budget_; }  // of the file
  const std::shared_ptr<KvBudget>& memory() const { return memory_; }

  // Throws Error(kMemory) if the disk does not have so many bytes left now.
  void RequireSpace(int64_t bytes) const;

  // Begins a turn. Pages used from now on may take the memory of pages used before. Pages used in
  // one turn stay until the next, even beyond the budget.
  void BeginTurn();
  // Announces that pages are to be written.
  void WillWrite(std::span<Page* const> pages);
  // Announces that bytes [begin, end) of each page are to be read. Begins to read those that are
  // not in memory, and returns their number.
  int64_t WillRead(std::span<Page* const> pages, int64_t begin, int64_t end);
  int64_t BytesInMemory(std::span<Page* const> pages) const;

 private:
  friend class FilePages;
  struct Extent {
    int64_t offset;
    int64_t bytes;
  };

  // Throws Error(kMemory).
  Extent TakeExtent(int64_t bytes);
  void Release(Extent extent) noexcept;
  void Forget(std::span<Page> pages) noexcept;

  // Marks blocks as used, under the mutex. Returns those that were not in memory.
  uint64_t Use(Page& page, uint64_t blocks);
  void Trim();
  void Evict(std::span<Page* const> pages) const;

  std::filesystem::path path_;
  FileDescriptor file_;
  std::shared_ptr<KvBudget> budget_;
  std::shared_ptr<KvBudget> memory_;
  mutable std::mutex mutex_;   // guards the members below
  int64_t end_ = 0;            // end of all space ever taken
  std::vector<Extent> holes_;  // space given back, with a capacity for all
  size_t extents_ = 0;
  std::list<Page*> in_memory_;  // the page used last comes last
  int64_t in_memory_bytes_ = 0;
  int64_t turn_ = 1;
};

// Pages of one size, side by side in a file: zeros, until they are written.
class FilePages {
 public:
  // Takes space for the pages. Throws Error(kMemory) if the disk has none.
  FilePages(std::shared_ptr<KvFile> file, int64_t pages, int64_t page_bytes);
  ~FilePages();
  FilePages(const FilePages&) = delete;
  FilePages& operator=(const FilePages&) = delete;

  PageData data() const { return PageData(data_); }
  KvFile::Page& operator[](size_t i) { return pages_[i]; }

 private:
  std::shared_ptr<KvFile> file_;
  KvFile::Extent extent_;
  std::byte* data_ = nullptr;
  std::vector<KvFile::Page> pages_;
};

}  // namespace godwit
