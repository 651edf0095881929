// Owned, 64-byte aligned memory without a type. Contents start as zeros. Move-only.
//
// Or a part of a mapped file, which it keeps mapped and never writes into.
// Or a part of another buffer (tensor/arena.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/mapped_file.h"

namespace godwit {

class Buffer {
 public:
  Buffer() = default;
  // Throws Error(kMemory) with the size when the system refuses. Memory comes straight from the
  // kernel, which hands out zeroed pages on first touch, so a buffer costs nothing until used.
  explicit Buffer(int64_t bytes);
  // part: of that file, from a multiple of 64 bytes on unless its readers need less.
  Buffer(std::shared_ptr<const MappedFile> file, std::span<const std::byte> part);
  // [begin, begin + bytes) of `whole`, which it keeps; begin: a multiple of 64.
  Buffer(std::shared_ptr<const Buffer> whole, int64_t begin, int64_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // Gives the bytes back to the system, as far as they are whole pages, and is empty afterwards.
  // Other parts of a file or of another buffer stay. Nothing may look at the bytes any more.
  void GiveBack() noexcept;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  bool is_mapped() const { return file_ != nullptr; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const Buffer> whole_;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace godwit
