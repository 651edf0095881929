#include "tensor/workspace.h"

#include <algorithm>

#include "base/error.h"

namespace godwit {

std::byte* Workspace::Take(int64_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  const int64_t begin = used_;
  const bool fits = begin + bytes <= block_.bytes();
  // Counted only once it is there: a size that was refused must not become the block's.
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
    // A scope is ending, which must not throw: the next step takes its matrices one by one, and
    // the first that is refused has a caller to tell.
  }
}

}  // namespace godwit
