#include "base/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/open_file.h"

namespace godwit {
namespace {

constexpr size_t kRequestBytes = size_t{128} << 10;  // every disk takes such a request

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path.string()) {
  const OpenedFile file = OpenRegularFile(path);
  if (file.size_bytes == 0) Throw(ErrorKind::kIo, "{}: the file is empty", path_);
  if (file.size_bytes > std::numeric_limits<size_t>::max()) {
    Throw(ErrorKind::kIo, "{}: {} bytes exceed the address space", path_, file.size_bytes);
  }
  const auto size_bytes = static_cast<size_t>(file.size_bytes);
  void* data = mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
  if (data == MAP_FAILED) ThrowErrno(path, "map");
  data_ = static_cast<const std::byte*>(data);
  size_bytes_ = size_bytes;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

void MappedFile::Advise(size_t offset, size_t size_bytes, Advice advice) const noexcept {
  if (offset >= size_bytes_ || size_bytes == 0) return;
  // The range is widened to whole pages, also for kDontNeed. A neighbour's page comes back with one
  // fault, whereas pages left at both ends of thousands of small tensors would add up.
  static const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page_bytes * page_bytes;
  const size_t end = offset + std::min(size_bytes, size_bytes_ - offset);
  int hint = MADV_WILLNEED;
  if (advice == Advice::kDontNeed) hint = MADV_DONTNEED;
  if (advice == Advice::kSequential) hint = MADV_SEQUENTIAL;
  if (advice == Advice::kLargePages) hint = MADV_HUGEPAGE;
  // Linux reads ahead at most one request of the disk and drops the rest, so the advice comes in
  // steps.
  const size_t step = advice == Advice::kWillNeed ? kRequestBytes : end - begin;
  for (size_t at = begin; at < end; at += step) {
    // The range stays inside the mapping: the kernel rounds its end up to the mapping's last page.
    madvise(const_cast<std::byte*>(data_) + at, std::min(step, end - at), hint);
  }
}

bool MappedFile::LoadIntoMemory(size_t offset, size_t size_bytes) const noexcept {
#ifdef MADV_POPULATE_READ
  static const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page_bytes * page_bytes;
  const size_t end = std::min(offset + size_bytes, size_bytes_);
  if (begin >= end) return true;
  void* const data = const_cast<std::byte*>(data_) + begin;
  int failed;
  do {
    failed = madvise(data, end - begin, MADV_POPULATE_READ);
  } while (failed != 0 && (errno == EINTR || errno == EAGAIN));
  return failed == 0 || errno != EFAULT;
#else
  static_cast<void>(offset);
  static_cast<void>(size_bytes);
  return true;
#endif
}

}  // namespace godwit
