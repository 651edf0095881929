#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cassert>
#include <utility>

#include "base/error.h"
#include "base/system/advice.h"

namespace godwit {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

void* Map(int64_t bytes) {
  return mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Maps memory at a multiple of kHugePage, because only whole, aligned pages become large. From 6.7
// on Linux aligns such mappings by itself, but not all of them.
void* MapAligned(int64_t bytes) {
  auto* memory = static_cast<std::byte*>(Map(bytes + kHugePage));
  if (memory == MAP_FAILED) return memory;
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
  const int64_t before = (kHugePage - address % kHugePage) % kHugePage;
  const auto page = static_cast<int64_t>(PageBytes());
  const int64_t end = before + (bytes + page - 1) / page * page;
  if (before > 0) munmap(memory, static_cast<size_t>(before));
  if (const int64_t after = bytes + kHugePage - end; after > 0) {
    munmap(memory + end, static_cast<size_t>(after));
  }
  return memory + before;
}

}  // namespace

Buffer::Buffer(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const bool large = bytes >= kHugePage && bytes <= INT64_MAX - kHugePage;
  void* memory = bytes < 0 ? MAP_FAILED : large ? MapAligned(bytes) : Map(bytes);
  if (memory == MAP_FAILED) Throw(ErrorKind::kMemory, "cannot allocate {} bytes", bytes);
  // Large pages save most address translation misses of a weight that streams through once per
  // token, and of a page of the KV cache. Such a page has 2 MiB for a model of 16 layers with 8 KV
  // heads of 64, in bf16. The call is advice: a system without large pages loses speed, nothing
  // else.
  if (large) Advise(memory, static_cast<size_t>(bytes), MemoryAdvice::kLargePages);
  data_ = static_cast<std::byte*>(memory);
}

Buffer::Buffer(std::shared_ptr<const MappedFile> file, std::span<const std::byte> part)
    : file_(std::move(file)),
      data_(const_cast<std::byte*>(part.data())),
      bytes_(std::ssize(part)) {}

Buffer::Buffer(std::shared_ptr<const Buffer> whole, int64_t begin, int64_t bytes)
    : whole_(std::move(whole)), data_(whole_->data() + begin), bytes_(bytes) {
  assert(begin % 64 == 0 && begin + bytes <= whole_->bytes());
}

Buffer::Buffer(Buffer&& other) noexcept
    : file_(std::move(other.file_)),
      whole_(std::move(other.whole_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(whole_, other.whole_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Buffer::GiveBack() noexcept {
  const Buffer given = std::move(*this);
  if (given.data_ == nullptr || (given.file_ == nullptr && given.whole_ == nullptr)) return;
  const auto page = static_cast<int64_t>(PageBytes());
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(given.data_));
  const int64_t before = (page - address % page) % page;
  const int64_t whole = (given.bytes_ - before) / page * page;
  if (whole <= 0) return;
  Advise(given.data_ + before, static_cast<size_t>(whole), MemoryAdvice::kDontNeed);
}

Buffer::~Buffer() {
  const bool owned = file_ == nullptr && whole_ == nullptr;
  if (data_ != nullptr && owned) munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace godwit
