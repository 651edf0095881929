// Normalisation of rows, and operations on each element, on a device.
//
// The output is f32, or bf16 for the product that follows. Rows of bf16 have an even stride of at
// least cols. Behind an odd number of cols comes a zero.
#pragma once

#include "cuda/device.h"
#include "cuda/kernels/activate.h"
#include "cuda/ops/matrix.h"
#include "tensor/dtype.h"

namespace godwit::cuda {

// Each row of x [rows, cols] divided by its root mean square, times weight [cols]. out may be x.
void RmsNormRows(const Stream& stream, DeviceMatrix<const float> x, const float* weight,
                 float epsilon, DeviceMatrix<float> out);
void RmsNormRows(const Stream& stream, DeviceMatrix<const float> x, const float* weight,
                 float epsilon, DeviceMatrix<BF16> out);

// out = activation(x); without an activation, x rounded to bf16.
void ActivateRows(const Stream& stream, ActivationKind kind, DeviceMatrix<const float> x,
                  DeviceMatrix<BF16> out);
// out = activation(gate) * up, from gate_up [rows, 2 * n] = gate beside up.
void ActivateGatedRows(const Stream& stream, ActivationKind kind, DeviceMatrix<const float> gate_up,
                       DeviceMatrix<float> out);
void ActivateGatedRows(const Stream& stream, ActivationKind kind, DeviceMatrix<const float> gate_up,
                       DeviceMatrix<BF16> out);

// x += y.
void AddRows(const Stream& stream, DeviceMatrix<const float> y, DeviceMatrix<float> x);
// The same of y's rows times the sigmoids of their gates [rows, 1].
void AddGatedRows(const Stream& stream, DeviceMatrix<const float> y,
                  DeviceMatrix<const float> gates, DeviceMatrix<float> x);

}  // namespace godwit::cuda
