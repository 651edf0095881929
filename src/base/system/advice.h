// Advice about memory and about what a system keeps of files. A system that does not take it
// changes speed or memory use, not results.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit {

enum class MemoryAdvice {
  kWillNeed,    // start reading ahead
  kDontNeed,    // drop these pages from the process; of a file, reading them again brings them back
  kSequential,  // read ahead further than usual
  kRandom,      // do not read ahead
  kLargePages,  // in large pages where there are any
};

// The bytes of a page of memory, and the most that they may be on this processor. Systems on 64-bit
// Arm have pages of 4, 16 or 64 KiB.
size_t PageBytes() noexcept;
#if defined(__aarch64__)
inline constexpr int64_t kMaxPageBytes = int64_t{64} << 10;
#else
inline constexpr int64_t kMaxPageBytes = int64_t{4} << 10;
#endif

// memory: the beginning of a page. The end is rounded up to whole pages.
void Advise(void* memory, size_t bytes, MemoryAdvice advice) noexcept;

// Reads mapped pages now, in one call. False: they cannot be read, and looking at them would be a
// SIGBUS. A system without such a call says true.
bool LoadPages(void* memory, size_t bytes) noexcept;

// Advice about the system's copy of a file: drop it, or read it ahead.
void DropFromCache(int file, int64_t begin, int64_t bytes) noexcept;
void ReadInOrder(int file) noexcept;

// Starts writing a part of a file to its disk, and with `wait` ends it.
void WriteBack(int file, int64_t begin, int64_t bytes, bool wait) noexcept;

}  // namespace godwit
