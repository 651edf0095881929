#include "kernels/short_convolution.h"

namespace godwit::kernels {

void ShortConvolution(const ShortConvolutionArgs& args) noexcept {
  for (int64_t c = args.first; c < args.last; ++c) args.out[c] = args.taps[c] * args.rows[0][c];
  for (int64_t j = 1; j < args.count; ++j) {
    const float* const taps = args.taps + j * args.width;
    const float* const row = args.rows[j];
    for (int64_t c = args.first; c < args.last; ++c) args.out[c] += taps[c] * row[c];
  }
  if (args.bias != nullptr) {
    for (int64_t c = args.first; c < args.last; ++c) args.out[c] += args.bias[c];
  }
  if (args.gate == nullptr) return;
  for (int64_t c = args.first; c < args.last; ++c) args.out[c] *= args.gate[c];
}

}  // namespace godwit::kernels
