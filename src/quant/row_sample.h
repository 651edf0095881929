// Some of many rows, evenly spread, without knowing beforehand how many will come.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/view.h"

namespace godwit::quant {

// Keeps every row at first. Each time `capacity` are there, every second one goes, and of those to
// come every second one does from then on. So there are at least capacity / 2, the same ones
// whenever the same rows come.
class RowSample {
 public:
  explicit RowSample(int64_t capacity = 128) : capacity_(capacity) {}

  // Whether the next row is wanted; if not, it has been counted. Else Add it.
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
