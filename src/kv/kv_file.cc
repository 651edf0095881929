#include "kv/kv_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "base/system/advice.h"
#include "base/system/file_space.h"

namespace godwit {
namespace {

// Opens a file without a name, which only this user may read.
FileDescriptor OpenNameless(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  std::string name = (folder ? path / "godwit-kv-XXXXXX" : path).string();
  FileDescriptor file(folder ? mkostemp(name.data(), O_CLOEXEC)
                             : open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) ThrowErrno(path, "make a file for KV caches");
  unlink(name.c_str());
  return file;
}

int64_t FreeBytes(const FileDescriptor& file) {
  struct statvfs status;
  if (fstatvfs(file.get(), &status) != 0) return INT64_MAX;
  return static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
}

// Returns 0 or an errno.
int Allocate(const FileDescriptor& file, int64_t offset, int64_t bytes) {
  struct rlimit limit;  // the system sends a signal beyond this limit
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<rlim_t>(offset + bytes) > limit.rlim_cur) {
    return EFBIG;
  }
  return TakeFileSpace(file.get(), offset, bytes);
}

void ReadAhead(const KvFile::Page& page, uint64_t blocks) {
  constexpr int64_t kRequestBytes = int64_t{128} << 10;  // every disk takes this much
  const int64_t block = page.block_bytes();
  for (int64_t at = 0; blocks != 0;) {
    const int skipped = std::countr_zero(blocks), run = std::countr_one(blocks >> skipped);
    const int64_t begin = (at + skipped) * block;
    const int64_t end = std::min(page.bytes, begin + run * block);
    for (int64_t from = begin; from < end; from += kRequestBytes) {
      Advise(page.data + from, static_cast<size_t>(std::min(kRequestBytes, end - from)),
             MemoryAdvice::kWillNeed);
    }
    at += skipped + run;
    blocks = skipped + run == 64 ? 0 : blocks >> (skipped + run);
  }
}

}  // namespace

uint64_t KvFile::Page::Blocks(int64_t begin, int64_t end) const {
  const int64_t first = begin / block_bytes(), last = (end - 1) / block_bytes();
  return (~uint64_t{0} >> (63 - (last - first))) << first;
}

int64_t KvFile::Page::BytesOf(uint64_t blocks) const {
  const int64_t last = (bytes - 1) / block_bytes();
  const int64_t beyond = (last + 1) * block_bytes() - bytes;  // missing in the last block
  return std::popcount(blocks) * block_bytes() - (blocks >> last & 1 ? beyond : 0);
}

KvFile::KvFile(const std::filesystem::path& path, int64_t bytes, std::shared_ptr<KvBudget> memory)
    : path_(path),
      file_(OpenNameless(path)),
      budget_(std::make_shared<KvBudget>(bytes > 0 ? bytes : FreeBytes(file_))),
      memory_(std::move(memory)) {}

void KvFile::RequireSpace(int64_t bytes) const {
  const int64_t free = FreeBytes(file_);
  if (bytes <= free) return;
  Throw(ErrorKind::kMemory, "the KV cache needs another {} in {}, and {} are free on its disk",
        FormatBytes(bytes), QuoteUnlessPlain(path_.native()), FormatBytes(free));
}

KvFile::Extent KvFile::TakeExtent(int64_t bytes) {
  Extent extent{.offset = 0, .bytes = bytes};
  {
    const std::lock_guard lock(mutex_);
    const auto hole = std::ranges::find(holes_, bytes, &Extent::bytes);
    if (hole != holes_.end()) {
      extent = *hole;
      *hole = holes_.back();
      holes_.pop_back();
    } else {
      if (++extents_ > holes_.capacity()) holes_.reserve(2 * extents_);
      extent.offset = std::exchange(end_, end_ + bytes);
    }
  }
  if (const int error = Allocate(file_, extent.offset, bytes); error != 0) {
    Release(extent);
    Throw(ErrorKind::kMemory, "the KV cache needs another {} in {}: {}", FormatBytes(bytes),
          QuoteUnlessPlain(path_.native()), std::generic_category().message(error));
  }
  return extent;
}

void KvFile::Release(Extent extent) noexcept {
  // On file systems without holes, the space stays taken until a later page uses it.
  GiveFileSpace(file_.get(), extent.offset, extent.bytes);
  const std::lock_guard lock(mutex_);
  holes_.push_back(extent);
}

void KvFile::Forget(std::span<Page> pages) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Page& page : pages) {
    if (page.in_memory == 0) continue;
    in_memory_.erase(page.place);
    in_memory_bytes_ -= page.BytesOf(page.in_memory);
  }
}

void KvFile::BeginTurn() {
  const std::lock_guard lock(mutex_);
  ++turn_;
  Trim();
}

void KvFile::WillWrite(std::span<Page* const> pages) {
  const std::lock_guard lock(mutex_);
  for (Page* const page : pages) Use(*page, page->Blocks(0, page->bytes));
}

int64_t KvFile::WillRead(std::span<Page* const> pages, int64_t begin, int64_t end) {
  const std::lock_guard lock(mutex_);
  int64_t read = 0;
  for (Page* const page : pages) {
    const uint64_t missing = Use(*page, page->Blocks(begin, end));
    if (missing == 0) continue;
    ReadAhead(*page, missing);
    read += page->BytesOf(missing);
  }
  return read;
}

int64_t KvFile::BytesInMemory(std::span<Page* const> pages) const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const Page* page : pages) bytes += page->BytesOf(page->in_memory);
  return bytes;
}

uint64_t KvFile::Use(Page& page, uint64_t blocks) {
  const uint64_t missing = blocks & ~page.in_memory;
  page.turn = turn_;
  if (page.in_memory == 0) {
    page.place = in_memory_.insert(in_memory_.end(), &page);
  } else {
    in_memory_.splice(in_memory_.end(), in_memory_, page.place);
  }
  page.in_memory |= blocks;
  in_memory_bytes_ += page.BytesOf(missing);
  if (missing != 0) Trim();
  return missing;
}

void KvFile::Trim() {
  const int64_t limit = std::max<int64_t>(0, memory_->free_bytes());
  if (in_memory_bytes_ <= limit) return;
  // Evicts a little more than necessary, so that many pages are written at once.
  const int64_t aim = limit - limit / 64;
  std::vector<Page*> evicted;
  while (in_memory_bytes_ > aim && in_memory_.front()->turn != turn_) {
    Page* const page = in_memory_.front();
    evicted.push_back(page);
    in_memory_.pop_front();
    in_memory_bytes_ -= page->BytesOf(std::exchange(page->in_memory, 0));
  }
  Evict(evicted);
}

// The system drops only written pages. All calls are advice: a system that ignores it keeps the
// pages as long as it has memory.
void KvFile::Evict(std::span<Page* const> pages) const {
  for (const Page* page : pages) {
    Advise(page->data, static_cast<size_t>(page->bytes), MemoryAdvice::kDontNeed);
    WriteBack(file_.get(), page->offset, page->bytes, /*wait=*/false);
  }
  for (const Page* page : pages) {
    WriteBack(file_.get(), page->offset, page->bytes, /*wait=*/true);
    DropFromCache(file_.get(), page->offset, page->bytes);
  }
}

FilePages::FilePages(std::shared_ptr<KvFile> file, int64_t pages, int64_t page_bytes)
    : file_(std::move(file)) {
  assert(page_bytes % KvFile::kAlignment == 0);
  pages_.reserve(pages);
  extent_ = file_->TakeExtent(pages * page_bytes);
  void* const memory = mmap(nullptr, static_cast<size_t>(extent_.bytes), PROT_READ | PROT_WRITE,
                            MAP_SHARED, file_->file_.get(), extent_.offset);
  if (memory == MAP_FAILED) {
    const int error = errno;
    file_->Release(extent_);
    Throw(ErrorKind::kMemory, "cannot map {} of the KV cache in {}: {}", FormatBytes(extent_.bytes),
          QuoteUnlessPlain(file_->path_.native()), std::generic_category().message(error));
  }
  // Pages of other layers lie beside a page, so an unannounced page is read alone.
  Advise(memory, static_cast<size_t>(extent_.bytes), MemoryAdvice::kRandom);
  data_ = static_cast<std::byte*>(memory);
  for (int64_t i = 0; i < pages; ++i) {
    pages_.push_back({.data = data_ + i * page_bytes,
                      .offset = extent_.offset + i * page_bytes,
                      .bytes = page_bytes,
                      .place = {}});
  }
}

FilePages::~FilePages() {
  file_->Forget(pages_);
  munmap(data_, static_cast<size_t>(extent_.bytes));
  file_->Release(extent_);
}

}  // namespace godwit
