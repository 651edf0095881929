#include "ops/copy_rows.h"

#include <algorithm>
#include <cassert>

#include "ops/profile.h"

namespace godwit::ops {

void CopyRows(const Exec& exec, MatrixView<const float> from, MatrixView<float> out) {
  assert(from.rows == out.rows && from.cols == out.cols);
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(out.rows, out.cols,
                    [&](int64_t row) { std::ranges::copy(from.RowSpan(row), out.Row(row)); });
}

void CopyToken(const AttentionShape& shape, int64_t tokens, int64_t token,
               MatrixView<const float> from, std::span<float> out) {
  assert(from.rows == tokens * shape.heads && std::ssize(out) == shape.heads * shape.head_dim);
  for (int64_t head = 0; head < shape.heads; ++head) {
    std::copy_n(from.Row(HeadMajorRow(shape, tokens, token, head)), shape.head_dim,
                out.begin() + head * shape.head_dim);
  }
}

}  // namespace godwit::ops
