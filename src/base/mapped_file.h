// MappedFile: a regular file mapped read-only, so that weights are read in place and not copied.
//
// Move-only; views of Span() live as long as the object, moving it leaves them valid. Reading and
// Advise() are thread-safe. The mapping follows the file. Truncating it on disk while it is mapped
// turns a read beyond the new end into SIGBUS. Readers therefore copy out (pack) early and do not
// come back.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/system/advice.h"

namespace godwit {

class MappedFile {
 public:
  using Advice = MemoryAdvice;

  // Throws Error(kIo) if `path` is missing, unreadable, not a regular file, or empty.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> Span() const { return {data_, size_bytes_}; }
  const std::string& path() const { return path_; }

  // A hint for [offset, offset + size_bytes), widened to whole pages and cut at the file's end.
  // Never fails: a kernel that does not take the hint changes speed or memory, not results.
  void Advise(size_t offset, size_t size_bytes, Advice advice) const noexcept;

  // Reads and maps that range now, in one call instead of a fault for every few pages. False: it
  // cannot be read, and looking at it would be a SIGBUS: the disk fails, or the file was cut. A
  // kernel that cannot do so says true.
  bool LoadIntoMemory(size_t offset, size_t size_bytes) const noexcept;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace godwit
