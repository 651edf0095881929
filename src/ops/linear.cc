#include "ops/linear.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "kernels/packing.h"

namespace godwit::ops {
namespace {

using kernels::GemmArgs;
using kernels::kPanelColumns;

using Gemm = void (*)(const GemmArgs&) noexcept;

Gemm SelectGemm(const kernels::KernelTable& kernels, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kernels.gemm_f32;
    case DType::kF16:
      return kernels.gemm_f16;
    case DType::kBF16:
      return kernels.gemm_bf16;
    default:
      Throw(ErrorKind::kUnsupported, "no matrix product for weights stored as {}", Name(dtype));
  }
}

// bf16 weights meet bf16 activations, the same numbers on every instruction set. The kernels read
// rows in pairs, so an odd row ends in a zero.
MatrixView<BF16> RoundRows(const Exec& exec, MatrixView<const float> x) {
  const auto rounded = exec.workspace.Matrix<BF16>(x.rows, x.cols + x.cols % 2);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    exec.kernels.f32_to_bf16(x.Row(row), x.cols, rounded.Row(row));
    if (x.cols % 2 != 0) rounded.Row(row)[x.cols] = BF16{0};
  });
  return rounded;
}

}  // namespace

void Linear(const Exec& exec, MatrixView<const float> x, const Weight& w, MatrixView<float> out) {
  assert(x.cols == w.inputs && out.cols == w.outputs && x.rows == out.rows);
  if (x.rows == 0) return;
  Workspace::Scope scope(exec.workspace);
  const Gemm gemm = SelectGemm(exec.kernels, w.dtype);
  const void* a = x.data;
  int64_t a_stride = x.stride;
  int64_t a_bytes = sizeof(float);
  if (w.dtype == DType::kBF16) {
    const auto rounded = RoundRows(exec, x);
    a = rounded.data;
    a_stride = rounded.stride;
    a_bytes = sizeof(BF16);
  }

  // A block of rows small enough to stay in the second-level cache is multiplied with one panel at
  // a time. Few rows take several panels a task, or waking the threads would cost more.
  constexpr int64_t kBlockRows = 96;
  const int64_t panels = kernels::PanelCount(w.outputs);
  const int64_t blocks = (x.rows + kBlockRows - 1) / kBlockRows;
  const int64_t panels_per_task =
      x.rows >= 8 ? 1 : std::clamp<int64_t>(panels / (4 * exec.pool.threads()), 1, 16);
  const int64_t tasks = (panels + panels_per_task - 1) / panels_per_task;
  exec.Parallel(tasks * blocks, [&](int64_t task) {
    const int64_t panel = task / blocks * panels_per_task;
    const int64_t row = task % blocks * kBlockRows;
    gemm({.a = static_cast<const std::byte*>(a) + row * a_stride * a_bytes,
          .a_stride = a_stride,
          .w = w.panels.data(),
          .bias = w.bias.empty() ? nullptr : w.bias.data(),
          .out = out.Row(row),
          .out_stride = out.stride,
          .rows = std::min(kBlockRows, x.rows - row),
          .k = w.inputs,
          .columns = w.outputs,
          .panel_begin = panel,
          .panel_end = std::min(panels, panel + panels_per_task)});
  });
}

Weight PackWeight(ThreadPool& pool, DType dtype, int64_t outputs, int64_t inputs,
                  const std::function<const void*(int64_t output)>& row) {
  const int64_t panels = kernels::PanelCount(outputs);
  const int64_t panel_bytes = kernels::PanelBytes(dtype, inputs);
  Weight weight{.dtype = dtype,
                .outputs = outputs,
                .inputs = inputs,
                .panels = Buffer(panels * panel_bytes),
                .bias = {}};
  pool.Run(panels, [&](int64_t panel, int /*worker*/) {
    const void* rows[kPanelColumns] = {};
    const int64_t first = panel * kPanelColumns;
    for (int64_t c = 0; c < std::min(kPanelColumns, outputs - first); ++c) rows[c] = row(first + c);
    kernels::PackPanel(dtype, rows, inputs, weight.panels.data() + panel * panel_bytes);
  });
  return weight;
}

void UnpackRow(const Weight& w, int64_t output, float* out) {
  const int64_t column = output % kPanelColumns;
  const std::byte* panel =
      w.panels.data() + output / kPanelColumns * kernels::PanelBytes(w.dtype, w.inputs);
  for (int64_t k = 0; k < w.inputs; ++k) {
    switch (w.dtype) {
      case DType::kF32:
        out[k] = reinterpret_cast<const float*>(panel)[k * kPanelColumns + column];
        break;
      case DType::kF16:
        out[k] = ToFloat(reinterpret_cast<const F16*>(panel)[k * kPanelColumns + column]);
        break;
      default:
        out[k] = ToFloat(
            reinterpret_cast<const BF16*>(panel)[k / 2 * 2 * kPanelColumns + column * 2 + k % 2]);
    }
  }
}

}  // namespace godwit::ops
