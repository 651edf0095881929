#include "tensor/workspace.h"

#include <algorithm>

#include "base/error.h"

namespace godwit {

std::byte* Workspace::Take(int64_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  const int64_t begin = used_;
  const bool fits = begin + bytes <= block_.bytes();
  // The bytes are counted once the memory exists: a refused size must not become the block's.
  if (!fits) overflow_.push_back({begin, Buffer(bytes)});
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return fits ? block_.data() + begin : overflow_.back().memory.data();
}

int64_t Workspace::held_bytes() const {
  int64_t bytes = block_.bytes();
  for (const Overflow& overflow : overflow_) bytes += overflow.memory.bytes();
  return bytes;
}

void Workspace::Release(int64_t mark) noexcept {
  used_ = mark;
  while (!overflow_.empty() && overflow_.back().begin >= mark) overflow_.pop_back();
  // Live views point into the block, so it changes only when nothing is taken.
  if (mark != 0 || peak_ <= block_.bytes()) return;
  block_ = Buffer();
  try {
    block_ = Buffer(peak_);
  } catch (const Error&) {
    // The end of a scope must not throw. The next step takes its matrices one by one, and the first
    // one refused has a caller to tell.
  }
}

}  // namespace godwit
