#include "attention/rotary_step.h"

#include <algorithm>
#include <cassert>

namespace godwit {

void RotaryStep::Fill(const RotaryEncoding& encoding, int64_t rows, int64_t first) {
  rows_ = rows;
  pairs_ = encoding.rotary_dim() / 2;
  const int64_t n = rows_ * pairs_;
  values_.resize(std::max(values_.size(), static_cast<size_t>(2 * n)));
  encoding.Fill(first, {values_.data(), rows_, pairs_, pairs_},
                {values_.data() + n, rows_, pairs_, pairs_});
}

ops::RotaryTable RotaryStep::TableForAll(int64_t rows) const {
  assert(rows_ == 1);
  return Table(rows, 0);
}

ops::RotaryTable RotaryStep::Table(int64_t rows, int64_t stride) const {
  return {{values_.data(), rows, pairs_, stride},
          {values_.data() + rows_ * pairs_, rows, pairs_, stride}};
}

}  // namespace godwit
