#include <cmath>

#include "kernels/scalar.h"

namespace godwit::kernels::scalar {

void AddWeightedRows(const AddWeightedRowsArgs& args) noexcept {
  for (int64_t i = 0; i < args.rows; ++i) {
    float* const out = args.out[i];
    for (int64_t j = 0; j < args.count; ++j) {
      const float weight = args.weights[i][j];
      for (int64_t c = 0; c < args.columns; ++c) out[c] = std::fma(weight, args.from[j][c], out[c]);
    }
  }
}

void DotRows(const float* x, const float* const* rows, int64_t count, int64_t n,
             float* out) noexcept {
  for (int64_t j = 0; j < count; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += double{x[i]} * rows[j][i];
    out[j] = static_cast<float>(sum);
  }
}

void DotDecayedRows(const DotDecayedRowsArgs& args) noexcept {
  for (int64_t j = args.count - 1; j >= 0; --j) {
    DotRows(args.x, &args.rows[j], 1, args.n, &args.x_dots[j]);
    DotRows(args.y, &args.rows[j], 1, args.n, &args.y_dots[j]);
    for (int64_t i = 0; i < args.n; ++i) {
      args.x[i] *= args.decays[j][i];
      args.y[i] *= args.decays[j][i];
    }
  }
}

}  // namespace godwit::kernels::scalar
