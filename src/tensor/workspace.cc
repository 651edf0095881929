#include "tensor/workspace.h"

#include <algorithm>

namespace godwit {

std::byte* Workspace::Take(int64_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  const int64_t begin = used_;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  if (used_ <= block_.bytes()) return block_.data() + begin;
  overflow_.emplace_back(bytes);
  return overflow_.back().data();
}

void Workspace::Release(int64_t mark) {
  used_ = mark;
  // Live views point into the block and the overflow, so both change only when nothing is taken.
  if (mark == 0 && !overflow_.empty()) {
    overflow_.clear();
    block_ = Buffer();
    block_ = Buffer(peak_);
  }
}

}  // namespace godwit
