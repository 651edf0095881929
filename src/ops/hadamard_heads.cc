#include "ops/hadamard_heads.h"

#include <cassert>

namespace godwit::ops {

void HadamardHeads(const Exec& exec, int64_t head_dim, MatrixView<float> x) {
  const ProfilePart measured(exec.profile, StepPart::kAttention);
  assert(x.cols % head_dim == 0);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    for (int64_t at = 0; at < x.cols; at += head_dim) {
      exec.kernels.hadamard(head_dim, x.Row(row) + at);
    }
  });
}

}  // namespace godwit::ops
