#include "ops/embedding.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "ops/pack_weight.h"

namespace godwit::ops {

void Embed(const Exec& exec, std::span<const int32_t> tokens, const Table& table,
           MatrixView<float> out, int64_t first) {
  assert(out.rows == static_cast<int64_t>(tokens.size()) && out.cols == table.cols);
  const auto row_bytes = table.cols * static_cast<int64_t>(SizeOf(table.dtype));
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(out.rows, out.cols, [&](int64_t row) {
    const int64_t token = tokens[row] - first;
    if (token < 0 || token >= table.rows) return void(std::ranges::fill(out.RowSpan(row), 0.0f));
    if (table.read) return table.read(token, out.RowSpan(row));
    const std::byte* source = table.data.data() + token * row_bytes;
    switch (table.dtype) {
      case DType::kF16:
        exec.kernels.f16_to_f32(reinterpret_cast<const F16*>(source), out.cols, out.Row(row));
        break;
      case DType::kBF16:
        exec.kernels.bf16_to_f32(reinterpret_cast<const BF16*>(source), out.cols, out.Row(row));
        break;
      default:
        std::memcpy(out.Row(row), source, row_bytes);
    }
  });
}

void Embed(const Exec& exec, std::span<const int32_t> tokens, const Weight& w,
           MatrixView<float> out, int64_t first) {
  assert(out.rows == static_cast<int64_t>(tokens.size()) && out.cols == w.inputs);
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(out.rows, out.cols, [&](int64_t row) {
    const int64_t token = tokens[row] - first;
    if (token < 0 || token >= w.outputs) return void(std::ranges::fill(out.RowSpan(row), 0.0f));
    UnpackRow(w, token, out.Row(row));
  });
}

}  // namespace godwit::ops
