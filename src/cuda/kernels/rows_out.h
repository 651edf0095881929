// The output of a kernel that computes rows of floats: as they are, or as the bf16 that the next
// product reads.
#pragma once

#include <cstdint>

#include "cuda/kernels/numbers.h"

namespace godwit::cuda {

struct RowsOut {
  float* floats;   // [rows, cols], or null
  BF16* bf16;      // [rows, cols padded with a zero to an even number], or null
  int64_t stride;  // elements between rows

  GODWIT_DEVICE void Set(int64_t row, int64_t col, int64_t cols, float x) const {
    if (floats != nullptr) {
      floats[row * stride + col] = x;
      return;
    }
    BF16* const out = bf16 + row * stride;
    out[col] = ToBF16(x);
    if (col + 1 == cols && cols % 2 != 0) out[cols] = BF16{0};
  }
};

}  // namespace godwit::cuda
