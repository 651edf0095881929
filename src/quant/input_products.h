// Sums of products of the inputs of a linear layer, over the rows of a calibration text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/exec.h"

namespace godwit::quant {

class InputProducts {
 public:
  // Rows of the same length each time; NaN and infinity are the caller's to refuse.
  void Add(const Exec& exec, std::span<const float> row);

  // Ends the adding: [inputs, inputs], of rows x the sum of x_i * x_j. Empty if there were none.
  // What comes out depends on the rows and their order alone.
  std::vector<float> Take(const Exec& exec);

  // That it takes for so many inputs.
  static int64_t Bytes(int64_t inputs);

 private:
  void Flush(const Exec& exec);

  int64_t inputs_ = 0;
  int64_t waiting_ = 0;
  std::vector<float> rows_;  // [inputs, kTogether], turned: those that are still to be added
  std::vector<float> sums_;
};

}  // namespace godwit::quant
