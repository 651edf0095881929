#include "tensor/arena.h"

namespace godwit {

Arena::Arena(int64_t bytes) : memory_(std::make_shared<const Buffer>(bytes)) {}

Buffer Arena::Take(int64_t bytes) {
  constexpr int64_t kAlignment = 64;
  const int64_t all = memory_->bytes();
  if (bytes <= 0 || bytes > all) return Buffer(bytes);
  const int64_t begin = taken_bytes_.fetch_add((bytes + kAlignment - 1) / kAlignment * kAlignment);
  return begin <= all - bytes ? Buffer(memory_, begin, bytes) : Buffer(bytes);
}

Buffer NewBuffer(Arena* arena, int64_t bytes) {
  return arena == nullptr ? Buffer(bytes) : arena->Take(bytes);
}

}  // namespace godwit
