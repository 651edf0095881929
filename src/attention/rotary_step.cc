#include "attention/rotary_step.h"

#include <algorithm>
#include <cassert>

namespace godwit {

void RotaryStep::Fill(const RotaryEncoding& encoding, int64_t rows, int64_t first) {
  rows_ = rows;
  pairs_ = encoding.rotary_dim() / 2;
  scales_queries_ = encoding.temperature().growth != 0;
  const int64_t n = rows_ * pairs_;
  values_.resize(std::max(values_.size(), static_cast<size_t>(2 * n + rows_)));
  encoding.Fill(first, {values_.data(), rows_, pairs_, pairs_},
                {values_.data() + n, rows_, pairs_, pairs_});
  if (!scales_queries_) return;
  for (int64_t row = 0; row < rows_; ++row) {
    values_[static_cast<size_t>(2 * n + row)] = encoding.temperature().At(first + row);
  }
}

ops::RotaryTable RotaryStep::TableForAll(int64_t rows) const {
  assert(rows_ == 1);
  return Table(rows, 0);
}

ops::RotaryTable RotaryStep::Table(int64_t rows, int64_t stride) const {
  const float* const sines = values_.data() + rows_ * pairs_;
  return {.cos = {values_.data(), rows, pairs_, stride * pairs_},
          .sin = {sines, rows, pairs_, stride * pairs_},
          .query_scale = {sines + rows_ * pairs_, scales_queries_ ? rows : 0, 1, stride}};
}

}  // namespace godwit
