#include "cuda/ops/norm.h"

#include <cassert>

#include "cuda/kernels/rms_norm.h"

namespace godwit::cuda {
namespace {

RowsOut OutOf(DeviceMatrix<float> out) {
  return {.floats = out.data, .bf16 = nullptr, .stride = out.stride};
}
RowsOut OutOf(DeviceMatrix<BF16> out) {
  assert(out.stride % 2 == 0 && out.stride >= out.cols);
  return {.floats = nullptr, .bf16 = out.data, .stride = out.stride};
}

// A block for each row and piece of it.
Grid PieceGrid(int64_t rows, int64_t cols) {
  return {.x = rows, .y = (cols + kPieceColumns - 1) / kPieceColumns};
}

template <class T>
void LaunchNorm(const Stream& stream, DeviceMatrix<const float> x, const float* weight,
                float epsilon, DeviceMatrix<T> out) {
  assert(x.rows == out.rows && x.cols == out.cols);
  stream.Launch<RmsNorm>({.x = x.rows}, {.x = x.data,
                                         .x_stride = x.stride,
                                         .weight = weight,
                                         .epsilon = epsilon,
                                         .cols = x.cols,
                                         .out = OutOf(out)});
}

// up: null for none.
template <class T>
void LaunchActivate(const Stream& stream, ActivationKind kind, DeviceMatrix<const float> x,
                    const float* up, DeviceMatrix<T> out) {
  stream.Launch<Activate>(PieceGrid(out.rows, out.cols), {.kind = kind,
                                                          .x = x.data,
                                                          .up = up,
                                                          .stride = x.stride,
                                                          .cols = out.cols,
                                                          .out = OutOf(out)});
}

template <class T>
void LaunchGated(const Stream& stream, ActivationKind kind, DeviceMatrix<const float> gate_up,
                 DeviceMatrix<T> out) {
  assert(gate_up.rows == out.rows && gate_up.cols == 2 * out.cols);
  LaunchActivate(stream, kind, gate_up, gate_up.data + out.cols, out);
}

// gates: without data for none.
void LaunchAdd(const Stream& stream, DeviceMatrix<const float> y, DeviceMatrix<const float> gates,
               DeviceMatrix<float> x) {
  assert(x.rows == y.rows && x.cols == y.cols);
  stream.Launch<Add>(PieceGrid(x.rows, x.cols), {.y = y.data,
                                                 .y_stride = y.stride,
                                                 .gates = gates.data,
                                                 .gate_stride = gates.stride,
                                                 .x = x.data,
                                                 .x_stride = x.stride,
                                                 .cols = x.cols});
}

}  // namespace

void RmsNormRows(const Stream& stream, DeviceMatrix<const float> x, const float* weight,
                 float epsilon, DeviceMatrix<float> out) {
  LaunchNorm(stream, x, weight, epsilon, out);
}

void RmsNormRows(const Stream& stream, DeviceMatrix<const float> x, const float* weight,
                 float epsilon, DeviceMatrix<BF16> out) {
  LaunchNorm(stream, x, weight, epsilon, out);
}

void ActivateRows(const Stream& stream, ActivationKind kind, DeviceMatrix<const float> x,
                  DeviceMatrix<BF16> out) {
  assert(x.rows == out.rows && x.cols == out.cols);
  LaunchActivate(stream, kind, x, /*up=*/nullptr, out);
}

void ActivateGatedRows(const Stream& stream, ActivationKind kind, DeviceMatrix<const float> gate_up,
                       DeviceMatrix<float> out) {
  LaunchGated(stream, kind, gate_up, out);
}

void ActivateGatedRows(const Stream& stream, ActivationKind kind, DeviceMatrix<const float> gate_up,
                       DeviceMatrix<BF16> out) {
  LaunchGated(stream, kind, gate_up, out);
}

void AddRows(const Stream& stream, DeviceMatrix<const float> y, DeviceMatrix<float> x) {
  LaunchAdd(stream, y, /*gates=*/{}, x);
}

void AddGatedRows(const Stream& stream, DeviceMatrix<const float> y,
                  DeviceMatrix<const float> gates, DeviceMatrix<float> x) {
  assert(gates.rows == y.rows && gates.cols == 1);
  LaunchAdd(stream, y, gates, x);
}

}  // namespace godwit::cuda
