#include "ops/gpu/gpu_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "ops/gpu/gpu_check.h"
#include "ops/gpu/gpu_products.h"
#include "ops/pack_weight.h"

namespace godwit::ops {
namespace {

constexpr int64_t kPlaceBytes = 256;  // every part of a copy begins at a multiple

// Rows that Linear multiplies at once: an output head makes many numbers of each.
constexpr int64_t kLinearRows = 64;

int64_t UpToPlace(int64_t bytes) { return (bytes + kPlaceBytes - 1) / kPlaceBytes * kPlaceBytes; }

int64_t FloatBytes(int64_t n) { return n * static_cast<int64_t>(sizeof(float)); }

struct LinearBuffers {
  cuda::DeviceMatrix<float> x;
  GpuRows rows;
  cuda::DeviceMatrix<float> out;
};
LinearBuffers NewLinearBuffers(GpuScratch& scratch, const GpuWeightShape& w, int64_t rows,
                               int64_t outputs) {
  return {.x = scratch.Matrix<float>(rows, w.inputs),
          .rows = NewGpuRows(scratch, w, rows),
          .out = scratch.Matrix<float>(rows, outputs)};
}

}  // namespace

int64_t GpuWeightShape::panel_bytes() const {
  const bool has_scales = dtype == DType::kI8 || dtype == DType::kGrouped;
  const int64_t packed = dtype == DType::kGrouped ? PackedBytes(groups, outputs, inputs)
                                                  : PackedBytes(dtype, outputs, inputs);
  return packed - (has_scales ? FloatBytes(outputs) : 0);
}

int64_t GpuWeightShape::bytes() const {
  return UpToPlace(panel_bytes()) + 2 * UpToPlace(FloatBytes(outputs));
}

GpuWeightShape GpuShapeOf(const Weight& w) {
  return {.dtype = w.dtype, .groups = w.groups, .outputs = w.outputs, .inputs = w.inputs};
}

std::string WhyNotOnGpu(DType dtype) {
  if (dtype == DType::kBF16 || dtype == DType::kI8 || dtype == DType::kGrouped) return "";
  return fmt::format("GPUs multiply weights in bf16, int8 and groups of 4 to 8 bits, found {}",
                     Name(dtype));
}

std::string WhyNotOnGpu(const Weight& w) {
  if (std::string why = WhyNotOnGpu(w.dtype); !why.empty()) return why;
  if (w.dtype == DType::kI8 && !(w.input == InputQuantization{})) {
    return "GPUs quantize the inputs of int8 weights with a scale for each row, found another way";
  }
  if (!w.input_order.empty()) return "GPUs read groups of neighbouring inputs, found another order";
  return "";
}

GpuWeight::GpuWeight(Gpu& gpu, const Weight& w)
    : shape_(GpuShapeOf(w)), memory_(std::make_unique<Memory>()) {
  assert(WhyNotOnGpu(w).empty() && w.panels.bytes() == shape_.panel_bytes());
  memory_->all = gpu.Take(shape_.bytes());
  cuda::DeviceAddress next = memory_->all.address();
  const auto put = [&](const void* from, int64_t bytes) -> const void* {
    if (bytes == 0) return nullptr;
    gpu.stream().device().CopyIn(gpu.stream().id(), from, next, bytes);
    return reinterpret_cast<const void*>(
        std::exchange(next, next + static_cast<cuda::DeviceAddress>(UpToPlace(bytes))));
  };
  memory_->weight = {
      .panels = put(w.panels.data(), w.panels.bytes()),
      .outputs = w.outputs,
      .inputs = w.inputs,
      .bias = static_cast<const float*>(put(w.bias.data(), FloatBytes(std::ssize(w.bias)))),
      .scales = static_cast<const float*>(put(w.scales.data(), FloatBytes(std::ssize(w.scales))))};
  gpu.stream().Synchronize();
}

GpuWeight::~GpuWeight() = default;
GpuWeight::GpuWeight(GpuWeight&& other) noexcept = default;
GpuWeight& GpuWeight::operator=(GpuWeight&& other) noexcept = default;

int64_t GpuLinearScratchBytes(const GpuWeightShape& w) {
  GpuScratch scratch;
  NewLinearBuffers(scratch, w, kLinearRows, w.outputs);
  return scratch.used();
}

void Linear(const Exec& exec, Gpu& gpu, MatrixView<const float> x, const GpuWeight& w,
            MatrixView<float> out) {
  assert(x.cols == w.shape().inputs && x.rows == out.rows && out.cols <= w.shape().outputs);
  const ProfilePart measured(exec.profile, StepPart::kProducts);
  GpuTurn turn(exec, gpu, GpuLinearScratchBytes(w.shape()));
  for (int64_t begin = 0; begin < x.rows; begin += kLinearRows) {
    const int64_t end = std::min(x.rows, begin + kLinearRows);
    turn.scratch().Release(0);
    LinearBuffers buffers = NewLinearBuffers(turn.scratch(), w.shape(), end - begin, out.cols);
    turn.CopyIn(x.Rows(begin, end), buffers.x);
    CopyInto(turn, buffers.x, w.shape(), buffers.rows);
    MultiplyRows(turn, buffers.rows, w, buffers.out);
    turn.CopyOut(buffers.out, out.Rows(begin, end));
    turn.Wait();
  }
  if (w.shape().dtype != DType::kBF16) RequireNumbers(exec, out);
}

}  // namespace godwit::ops
