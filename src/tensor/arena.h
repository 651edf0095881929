// Arena: memory for buffers that live as long as each other, as the weights of a model do. They lie
// side by side, so that large pages lie under all of them. A buffer alone has only the large pages
// that it covers whole, and below 2 MiB none. Experts of a mixture in 4 bits have 0.9 and 1.8 MB
// each; one row then reads 0.87 as fast (docs/performance-history.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "tensor/buffer.h"

namespace godwit {

class Arena {
 public:
  // Throws Error(kMemory) with the size when the system refuses. Memory that is not taken costs
  // nothing.
  explicit Arena(int64_t bytes);

  // Takes the next so many bytes, zeros, from a multiple of 64 on. Where they do not fit, they are
  // a buffer of its own, which the system may refuse. The memory goes back to the system when the
  // arena and all that was taken are gone. May be called from several threads.
  Buffer Take(int64_t bytes);

 private:
  std::shared_ptr<const Buffer> memory_;
  std::atomic<int64_t> taken_bytes_ = 0;
};

// From `arena`, where there is one.
Buffer NewBuffer(Arena* arena, int64_t bytes);

}  // namespace godwit
