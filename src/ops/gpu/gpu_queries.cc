#include "ops/gpu/gpu_queries.h"

#include <algorithm>
#include <array>

namespace godwit::ops {

void PutQueries(const Exec& exec, const AttentionSource& source, const QueryRows& rows,
                cuda::DeviceMatrix<float> to) {
  const bool rounded = source.kv.dtype == DType::kBF16;
  const int64_t of_head = rows.rows * rows.group;
  exec.ParallelRows(to.rows, to.cols, [&](int64_t row) {
    const int64_t head = row / of_head;
    const float* const from =
        source.q.Row((head * rows.all + rows.begin) * rows.group + row % of_head);
    float* const into = to.data + row * to.stride;
    if (!rounded) {
      std::copy_n(from, to.cols, into);
      return;
    }
    std::array<BF16, kernels::kMaxHeadDim> narrow;
    exec.kernels.f32_to_bf16(from, to.cols, narrow.data());
    exec.kernels.bf16_to_f32(narrow.data(), to.cols, into);
  });
}

}  // namespace godwit::ops
