#include "tensor/workspace.h"

#include <algorithm>

#include "base/error.h"

namespace godwit {

std::byte* Workspace::Take(int64_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  const int64_t begin = used_;
  const bool fits = begin + bytes <= block_.bytes();
  // The bytes are counted once the memory exists: a refused size must not become the block's.
  if (!fits) overflow_.emplace_back(bytes);
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return fits ? block_.data() + begin : overflow_.back().data();
}

void Workspace::Release(int64_t mark) noexcept {
  used_ = mark;
  // Live views point into the block and the overflow, so both change only when nothing is taken.
  if (mark != 0 || overflow_.empty()) return;
  overflow_.clear();
  block_ = Buffer();
  try {
    block_ = Buffer(peak_);
  } catch (const Error&) {
    // The end of a scope must not throw. The next step takes its matrices one by one, and the first
    // one refused has a caller to tell.
  }
}

}  // namespace godwit
