#include "tensor/buffer.h"

#include <sys/mman.h>

#include <utility>

#include "base/error.h"

namespace godwit {

Buffer::Buffer(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = bytes < 0 ? MAP_FAILED
                           : mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Throw(ErrorKind::kMemory, "cannot allocate {} bytes", bytes);
  // Large pages save most of the address translation misses of a weight that is streamed through
  // once per token. It is advice: a system without them loses speed, nothing else.
  constexpr int64_t kHugePage = int64_t{2} << 20;
  if (bytes >= 2 * kHugePage) madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(memory);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace godwit
