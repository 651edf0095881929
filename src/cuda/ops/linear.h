// Products of rows with packed weights, on a device. Weights lie as on the CPU (kernels/packing.h,
// kernels/group_packing.h): they are copied as they are.
#pragma once

#include <cstdint>

#include "cuda/device.h"
#include "cuda/ops/matrix.h"
#include "tensor/dtype.h"
#include "tensor/group_format.h"

namespace godwit::cuda {

// Up to kFewRows rows take another kernel than more rows, of the same bits.
inline constexpr int64_t kFewRows = 16;

struct DeviceWeight {
  const void* panels;
  int64_t outputs;
  int64_t inputs;
  const float* bias = nullptr;    // [outputs] or null
  const float* scales = nullptr;  // [outputs]: of int8; if grouped, factors or null
};

// out = x * w^T + bias, for bf16 x and w. x [rows, w.inputs] has an even stride and zeros behind an
// odd number of inputs.
void LinearBF16(const Stream& stream, DeviceMatrix<const BF16> x, const DeviceWeight& w,
                DeviceMatrix<float> out);

// Rows of int8 with scales.
struct DeviceIntegers {
  int8_t* data;    // [rows, cols], padded with zeros; 4-byte aligned
  int64_t stride;  // elements between rows, a multiple of 4
  int64_t rows;
  int64_t cols;
  float* scales;                  // [rows], or [rows, blocks] for a grouped weight
  int16_t* group_sums = nullptr;  // [rows, groups of whole blocks], for a grouped weight
};
// The numbers that a row takes, padded: for int8 and for a grouped weight.
int64_t IntegerStride(int64_t cols);
int64_t IntegerStride(const GroupFormat& format, int64_t cols);

// Quantizes each row of x with a scale of its own, or in the blocks of grouped weights.
void QuantizeForInt8(const Stream& stream, DeviceMatrix<const float> x, const DeviceIntegers& out);
void QuantizeForGroups(const Stream& stream, DeviceMatrix<const float> x, const GroupFormat& format,
                       const DeviceIntegers& out);

// The products of kernels::GemmArgs and kernels::GroupGemmArgs, with their bits.
void LinearInt8(const Stream& stream, const DeviceIntegers& x, const DeviceWeight& w,
                DeviceMatrix<float> out);
void LinearGroups(const Stream& stream, const DeviceIntegers& x, const GroupFormat& format,
                  const DeviceWeight& w, DeviceMatrix<float> out);

}  // namespace godwit::cuda
