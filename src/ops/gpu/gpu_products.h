// Products on a GPU, for the operations of this folder: rows in the form that a weight reads.
#pragma once

#include <cstdint>

#include "cuda/device.h"
#include "cuda/ops/linear.h"
#include "cuda/ops/matrix.h"
#include "cuda/ops/norm.h"
#include "ops/gpu/gpu_turn.h"
#include "ops/gpu/gpu_weight.h"
#include "ops/norm.h"
#include "tensor/dtype.h"

namespace godwit::ops {

struct GpuWeight::Memory {
  cuda::DeviceMemory all;
  cuda::DeviceWeight weight;
};

// The norm's gains in a GPU's memory.
struct GpuNorm {
  GpuNorm(Gpu& gpu, const NormWeights& norm);
  cuda::DeviceMemory gains;
  float epsilon;
};

// Rows [rows, w.inputs] in scratch memory, not yet filled. With bf16 the others are empty. Else
// `floats` are filled, and then quantized.
struct GpuRows {
  cuda::DeviceMatrix<BF16> bf16 = {};
  cuda::DeviceMatrix<float> floats = {};
  cuda::DeviceIntegers integers = {};
};
GpuRows NewGpuRows(GpuScratch& scratch, const GpuWeightShape& w, int64_t rows);

// Fill rows: with norm(x), with x, or with activation(gate) * up of gate_up = gate beside up.
void NormInto(const GpuTurn& turn, cuda::DeviceMatrix<const float> x, const GpuNorm& norm,
              const GpuWeightShape& w, const GpuRows& rows);
void CopyInto(const GpuTurn& turn, cuda::DeviceMatrix<float> x, const GpuWeightShape& w,
              GpuRows& rows);
void GateInto(const GpuTurn& turn, cuda::ActivationKind activation,
              cuda::DeviceMatrix<const float> gate_up, const GpuWeightShape& w,
              const GpuRows& rows);

// out = rows * w^T + bias, of the first out.cols outputs.
void MultiplyRows(const GpuTurn& turn, const GpuRows& rows, const GpuWeight& w,
                  cuda::DeviceMatrix<float> out);

}  // namespace godwit::ops
