// A sample of rows, evenly spread, although their number is not known beforehand.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/view.h"

namespace godwit::quant {

// Keeps every row at first. Each time `capacity` rows are there, every second one goes, and from
// then on only every second row to come is kept. At least capacity / 2 rows stay, the same ones
// whenever the same rows come.
class RowSample {
 public:
  explicit RowSample(int64_t capacity = 128) : capacity_(capacity) {}

  // Whether the next row is wanted: then Add it. A row that is not wanted has been counted.
  bool WantsNext() {
    const bool wants = seen_ % stride_ == 0;
    if (!wants) ++seen_;
    return wants;
  }
  void Add(std::span<const float> row);

  MatrixView<const float> rows() const { return {rows_.data(), count_, columns_, columns_}; }

 private:
  int64_t capacity_;
  int64_t stride_ = 1;
  int64_t seen_ = 0;
  int64_t count_ = 0;
  int64_t columns_ = 0;
  std::vector<float> rows_;  // [count, columns]
};

}  // namespace godwit::quant
