// Elementwise operations on matrices.
#pragma once

#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

enum class Activation { kSilu, kGeluErf, kGeluTanh, kRelu };

// x = activation(x), in place.
void Activate(const Exec& exec, Activation activation, MatrixView<float> x);

// The gated unit: out = activation(gate) * up, from gate_up [rows, 2 * n] = gate beside up.
// out [rows, n] may be the left half of gate_up.
void ActivateGated(const Exec& exec, Activation activation, MatrixView<const float> gate_up,
                   MatrixView<float> out);

// Every element to the nearest number in [-limit, limit], in place; NaN stays.
void Clamp(const Exec& exec, float limit, MatrixView<float> x);

// x += y.
void Add(const Exec& exec, MatrixView<const float> y, MatrixView<float> x);

}  // namespace godwit::ops
