#include "ops/embedding.h"

#include <cassert>
#include <cstring>

#include "ops/pack_weight.h"

namespace godwit::ops {

void Embed(const Exec& exec, std::span<const int32_t> tokens, const Table& table,
           MatrixView<float> out) {
  assert(out.rows == static_cast<int64_t>(tokens.size()) && out.cols == table.cols);
  const auto row_bytes = table.cols * static_cast<int64_t>(SizeOf(table.dtype));
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(out.rows, out.cols, [&](int64_t row) {
    const int32_t token = tokens[row];
    assert(0 <= token && token < table.rows);
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
           MatrixView<float> out) {
  assert(out.rows == static_cast<int64_t>(tokens.size()) && out.cols == w.inputs);
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(out.rows, out.cols, [&](int64_t row) {
    const int32_t token = tokens[row];
    assert(0 <= token && token < w.outputs);
    UnpackRow(w, token, out.Row(row));
  });
}

}  // namespace godwit::ops
