#include "base/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/open_file.h"
#include "base/system/advice.h"

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
  const size_t begin = offset / PageBytes() * PageBytes();
  const size_t end = offset + std::min(size_bytes, size_bytes_ - offset);
  // Linux reads ahead at most one request of the disk and drops the rest, so the advice comes in
  // steps.
  const size_t step = advice == Advice::kWillNeed ? kRequestBytes : end - begin;
  for (size_t at = begin; at < end; at += step) {
    // The range stays inside the mapping: the kernel rounds its end up to the mapping's last page.
    godwit::Advise(const_cast<std::byte*>(data_) + at, std::min(step, end - at), advice);
  }
}

bool MappedFile::LoadIntoMemory(size_t offset, size_t size_bytes) const noexcept {
  const size_t begin = offset / PageBytes() * PageBytes();
  const size_t end = std::min(offset + size_bytes, size_bytes_);
  return begin >= end || LoadPages(const_cast<std::byte*>(data_) + begin, end - begin);
}

}  // namespace godwit
