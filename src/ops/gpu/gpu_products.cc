#include "ops/gpu/gpu_products.h"

#include <cassert>

namespace godwit::ops {
namespace {

void QuantizeInto(const GpuTurn& turn, const GpuWeightShape& w, const GpuRows& rows) {
  if (w.dtype == DType::kGrouped) {
    cuda::QuantizeForGroups(turn.stream(), rows.floats, w.groups, rows.integers);
  } else {
    cuda::QuantizeForInt8(turn.stream(), rows.floats, rows.integers);
  }
}

}  // namespace

GpuNorm::GpuNorm(Gpu& gpu, const NormWeights& norm)
    : gains(gpu.Take(static_cast<int64_t>(norm.weight.size() * sizeof(float)))),
      epsilon(norm.epsilon) {
  assert(norm.kind == NormKind::kRms && norm.bias.empty());
  gpu.stream().CopyIn(norm.weight.data(), gains, gains.bytes());
  gpu.stream().Synchronize();
}

GpuRows NewGpuRows(GpuScratch& scratch, const GpuWeightShape& w, int64_t rows) {
  GpuRows result;
  if (w.dtype == DType::kBF16) {
    result.bf16 = scratch.Matrix<BF16>(rows, w.inputs);
    return result;
  }
  const bool grouped = w.dtype == DType::kGrouped;
  const int64_t blocks = grouped ? BlockCount(w.groups, w.inputs) : 1;
  const int64_t stride =
      grouped ? cuda::IntegerStride(w.groups, w.inputs) : cuda::IntegerStride(w.inputs);
  result.floats = scratch.Matrix<float>(rows, w.inputs);
  result.integers = {.data = scratch.New<int8_t>(rows * stride),
                     .stride = stride,
                     .rows = rows,
                     .cols = w.inputs,
                     .scales = scratch.New<float>(rows * blocks)};
  if (grouped) {
    result.integers.group_sums = scratch.New<int16_t>(rows * blocks * GroupsOfBlock(w.groups));
  }
  return result;
}

void NormInto(const GpuTurn& turn, cuda::DeviceMatrix<const float> x, const GpuNorm& norm,
              const GpuWeightShape& w, const GpuRows& rows) {
  const auto* const gains = norm.gains.As<const float>();
  if (w.dtype == DType::kBF16) {
    return cuda::RmsNormRows(turn.stream(), x, gains, norm.epsilon, rows.bf16);
  }
  cuda::RmsNormRows(turn.stream(), x, gains, norm.epsilon, rows.floats);
  QuantizeInto(turn, w, rows);
}

void CopyInto(const GpuTurn& turn, cuda::DeviceMatrix<float> x, const GpuWeightShape& w,
              GpuRows& rows) {
  if (w.dtype == DType::kBF16) {
    return cuda::ActivateRows(turn.stream(), cuda::ActivationKind::kNone, x, rows.bf16);
  }
  rows.floats = x;  // quantized from where it is
  QuantizeInto(turn, w, rows);
}

void GateInto(const GpuTurn& turn, cuda::ActivationKind activation,
              cuda::DeviceMatrix<const float> gate_up, const GpuWeightShape& w,
              const GpuRows& rows) {
  if (w.dtype == DType::kBF16) {
    return cuda::ActivateGatedRows(turn.stream(), activation, gate_up, rows.bf16);
  }
  cuda::ActivateGatedRows(turn.stream(), activation, gate_up, rows.floats);
  QuantizeInto(turn, w, rows);
}

void MultiplyRows(const GpuTurn& turn, const GpuRows& rows, const GpuWeight& w,
                  cuda::DeviceMatrix<float> out) {
  cuda::DeviceWeight weight = w.memory().weight;
  weight.outputs = out.cols;  // panels lie one behind another
  switch (w.shape().dtype) {
    case DType::kBF16:
      return cuda::LinearBF16(turn.stream(), rows.bf16, weight, out);
    case DType::kI8:
      return cuda::LinearInt8(turn.stream(), rows.integers, weight, out);
    default:
      assert(w.shape().dtype == DType::kGrouped);
      return cuda::LinearGroups(turn.stream(), rows.integers, w.shape().groups, weight, out);
  }
}

}  // namespace godwit::ops
