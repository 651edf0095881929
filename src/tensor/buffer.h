// Owned, 64-byte aligned memory without a type. Contents start as zeros. Move-only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit {

class Buffer {
 public:
  Buffer() = default;
  // Throws Error(kMemory) with the size when the system refuses. Memory comes straight from the
  // kernel, which hands out zeroed pages on first touch, so a buffer costs nothing until used.
  explicit Buffer(int64_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace godwit
