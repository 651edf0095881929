#include "quant/row_sample.h"

#include <algorithm>

namespace godwit::quant {

void RowSample::Add(std::span<const float> row) {
  columns_ = std::ssize(row);
  const int64_t place = seen_++;
  if (count_ == capacity_) {
    for (int64_t i = 0; 2 * i < count_; ++i) {
      std::copy_n(rows_.begin() + 2 * i * columns_, columns_, rows_.begin() + i * columns_);
    }
    count_ = (count_ + 1) / 2;
    stride_ *= 2;
    rows_.resize(count_ * columns_);
    if (place % stride_ != 0) return;
  }
  rows_.insert(rows_.end(), row.begin(), row.end());
  ++count_;
}

}  // namespace godwit::quant
