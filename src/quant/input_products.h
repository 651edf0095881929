// Sums of products of the inputs of a linear layer, over the rows of a calibration text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/exec.h"

namespace godwit::quant {

class InputProducts {
 public:
  // Adds a row, always of the same length. The caller refuses NaN and infinity.
  void Add(const Exec& exec, std::span<const float> row);

  // Ends the adding. Returns [inputs, inputs]: the sums of x_i * x_j over all rows; empty without
  // rows. The result depends on the rows and their order alone.
  std::vector<float> Take(const Exec& exec);

  // The memory of an InputProducts of so many inputs.
  static int64_t Bytes(int64_t inputs);

 private:
  void Flush(const Exec& exec);

  int64_t inputs_ = 0;
  int64_t waiting_ = 0;
  std::vector<float> rows_;  // [inputs, kTogether]: rows still to be added, transposed
  std::vector<float> sums_;
};

}  // namespace godwit::quant
