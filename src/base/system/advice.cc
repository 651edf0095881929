#include "base/system/advice.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace godwit {

size_t PageBytes() noexcept {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void Advise(void* memory, size_t bytes, MemoryAdvice advice) noexcept {
  int hint = MADV_WILLNEED;
  if (advice == MemoryAdvice::kDontNeed) hint = MADV_DONTNEED;
  if (advice == MemoryAdvice::kSequential) hint = MADV_SEQUENTIAL;
  if (advice == MemoryAdvice::kRandom) hint = MADV_RANDOM;
  if (advice == MemoryAdvice::kLargePages) {
#ifdef MADV_HUGEPAGE
    hint = MADV_HUGEPAGE;
#else
    return;
#endif
  }
  madvise(memory, bytes, hint);
}

bool LoadPages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) noexcept {
#ifdef MADV_POPULATE_READ
  int failed;
  do {
    failed = madvise(memory, bytes, MADV_POPULATE_READ);
  } while (failed != 0 && (errno == EINTR || errno == EAGAIN));
  return failed == 0 || errno != EFAULT;
#else
  return true;
#endif
}

#ifdef __linux__

void DropFromCache(int file, int64_t begin, int64_t bytes) noexcept {
  posix_fadvise(file, begin, bytes, POSIX_FADV_DONTNEED);
}
void ReadInOrder(int file) noexcept { posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL); }

void WriteBack(int file, int64_t begin, int64_t bytes, bool wait) noexcept {
  unsigned int how = SYNC_FILE_RANGE_WRITE;
  if (wait) how |= SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER;
  sync_file_range(file, begin, bytes, how);
}

#else

void DropFromCache(int /*file*/, int64_t /*begin*/, int64_t /*bytes*/) noexcept {}
void ReadInOrder(int /*file*/) noexcept {}
void WriteBack(int file, int64_t /*begin*/, int64_t /*bytes*/, bool wait) noexcept {
  if (wait) fsync(file);
}

#endif

}  // namespace godwit
