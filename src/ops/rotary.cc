#include "ops/rotary.h"

#include <algorithm>
#include <cassert>

namespace godwit::ops {

void RotateHeadMajor(const Exec& exec, const AttentionShape& shape, MatrixView<const float> x,
                     const RotaryTable& table, MatrixView<float> out) {
  assert(x.cols == shape.heads * shape.head_dim);
  assert(table.query_gain.empty() || std::ssize(table.query_gain) == shape.head_dim);
  assert(out.rows == x.rows * shape.heads && out.cols >= shape.head_dim);
  const ProfilePart measured(exec.profile, StepPart::kRopeAndKv);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t token) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      float* row = out.Row(HeadMajorRow(shape, x.rows, token, head));
      std::copy_n(x.Row(token) + head * shape.head_dim, shape.head_dim, row);
      exec.kernels.rotate_half(table.cos.Row(token), table.sin.Row(token), table.cos.cols, row);
      for (size_t d = 0; d < table.query_gain.size(); ++d) row[d] *= table.query_gain[d];
      if (table.query_scale.rows == 0) continue;
      const float scale = *table.query_scale.Row(token);
      for (int64_t d = 0; d < shape.head_dim; ++d) row[d] *= scale;
    }
  });
}

}  // namespace godwit::ops
