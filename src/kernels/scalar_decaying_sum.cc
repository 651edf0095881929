#include "kernels/decaying_sum.h"

namespace godwit::kernels {

void DecayingSum(const DecayingSumArgs& args) noexcept {
  const auto& [powers, begin, rows, count, first, last, out] = args;
  for (int64_t c = first; c < last; ++c) out[c] = powers[count] * begin[c];
  for (int64_t j = 0; j < count; ++j) {
    const float power = powers[count - 1 - j];
    for (int64_t c = first; c < last; ++c) out[c] += power * rows[j][c];
  }
}

}  // namespace godwit::kernels
