// A file behind the pages of KV caches: those that were used last lie in memory, too, the others on
// the disk alone, from where they are read ahead as soon as somebody knows what he will look at.
//
// The file is mapped, so a page keeps its address, and who looks at one that is not in memory waits
// for the disk and finds the same bytes: to announce nothing costs time, never bits. Room on the
// disk is taken before it is mapped: a full disk is an error where a page is taken, not a signal
// where it is written. The file has lost its name before its first byte is written, and ends with
// the process, whatever ends that. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/open_file.h"
#include "kv/kv_budget.h"

namespace godwit {

class KvFile {
 public:
  // Pages begin at multiples of it, so that each comes and goes without its neighbours.
  static constexpr int64_t kAlignment = 4096;

  struct Page {
    std::byte* data;
    int64_t offset;  // in the file
    int64_t bytes;
    int64_t turn = 0;  // in which it was used last
    // A bit for each of its blocks that is in memory, as far as we know: the system may take it
    // away before. One that has none is not listed.
    uint64_t in_memory = 0;
    std::list<Page*>::iterator place;  // among those listed

    // Whole pages of the system, 64 to a page at most.
    int64_t block_bytes() const {
      return (bytes + 64 * kAlignment - 1) / (64 * kAlignment) * kAlignment;
    }
    uint64_t Blocks(int64_t begin, int64_t end) const;  // that hold these bytes
    int64_t BytesOf(uint64_t blocks) const;
  };

  // path: a folder, or the name of a file that is not there yet. bytes: what it may grow to; 0:
  // what is free on its disk. memory: what pages may take of the machine's memory, together with
  // who else takes of that budget. Throws Error(kIo) that names the path.
  KvFile(const std::filesystem::path& path, int64_t bytes, std::shared_ptr<KvBudget> memory);

  const std::shared_ptr<KvBudget>& budget() const { return budget_; }  // of the file
  const std::shared_ptr<KvBudget>& memory() const { return memory_; }

  // Throws Error(kMemory) if the disk has not so much left now.
  void RequireRoom(int64_t bytes) const;

  // What is used from here on may take the memory of what was used before. What is used in one
  // turn stays until the next, even beyond the budget.
  void BeginTurn();
  // Pages are to be written.
  void WillWrite(std::span<Page* const> pages);
  // Bytes [begin, end) of each are to be read: begins to read what is not in memory, and returns
  // the bytes of that.
  int64_t WillRead(std::span<Page* const> pages, int64_t begin, int64_t end);
  int64_t BytesInMemory(std::span<Page* const> pages) const;

 private:
  friend class FilePages;
  struct Room {
    int64_t offset;
    int64_t bytes;
  };

  // Throws Error(kMemory).
  Room TakeRoom(int64_t bytes);
  void GiveBack(Room room) noexcept;
  void Forget(std::span<Page> pages) noexcept;

  // Under the mutex. The blocks of these that were not in memory.
  uint64_t Use(Page& page, uint64_t blocks);
  void Trim();
  void Evict(std::span<Page* const> pages) const;

  std::filesystem::path path_;
  FileDescriptor file_;
  std::shared_ptr<KvBudget> budget_;
  std::shared_ptr<KvBudget> memory_;
  mutable std::mutex mutex_;  // of what follows
  int64_t end_ = 0;           // of what was ever taken
  std::vector<Room> holes_;   // what was given back of that, with a capacity for all
  size_t rooms_ = 0;
  std::list<Page*> in_memory_;  // the one that was used last comes last
  int64_t in_memory_bytes_ = 0;
  int64_t turn_ = 1;
};

// Pages of one size, side by side in a file: zeros, until they are written.
class FilePages {
 public:
  // Throws Error(kMemory) if the disk has no room for them.
  FilePages(std::shared_ptr<KvFile> file, int64_t pages, int64_t page_bytes);
  ~FilePages();
  FilePages(const FilePages&) = delete;
  FilePages& operator=(const FilePages&) = delete;

  std::byte* data() const { return data_; }
  KvFile::Page& operator[](size_t i) { return pages_[i]; }

 private:
  std::shared_ptr<KvFile> file_;
  KvFile::Room room_;
  std::byte* data_ = nullptr;
  std::vector<KvFile::Page> pages_;
};

}  // namespace godwit
