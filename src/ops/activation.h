// Elementwise operations on matrices.
#pragma once

#include <span>

#include "ops/exec.h"
#include "ops/linear_rows.h"
#include "tensor/view.h"

namespace godwit::ops {

enum class Activation {
  kSilu,
  kGeluErf,
  kGeluTanh,
  kRelu,
  kSquaredRelu,  // max(x, 0)^2
};

// out = activation(x), in the form that the linear layer after it reads.
void Activate(const Exec& exec, Activation activation, MatrixView<const float> x, LinearRows& out);
// The same; several `outs` have the rows one after the other.
void Activate(const Exec& exec, Activation activation, MatrixView<const float> x,
              std::span<LinearRows> outs);

// The gated unit: outs = activation(gate) * up, from gate_up [rows, 2 * n] = gate beside up,
// likewise. Several `outs` have the rows one after the other.
void ActivateGated(const Exec& exec, Activation activation, MatrixView<const float> gate_up,
                   std::span<LinearRows> outs);

// The same in floats: out [rows, n], which may be the gates.
void ActivateGated(const Exec& exec, Activation activation, MatrixView<const float> gate_up,
                   MatrixView<float> out);

// The gated unit of gpt-oss: out = (up + 1) * gate * sigmoid(alpha * gate), with gate brought to
// limit at most and up into [-limit, limit] first.
struct ClampedSwiglu {
  float alpha = 1.702f;
  float limit = 7;

  bool operator==(const ClampedSwiglu&) const = default;
};
void ActivateGated(const Exec& exec, const ClampedSwiglu& unit, MatrixView<const float> gate_up,
                   std::span<LinearRows> outs);

// xIELU (arXiv 2411.13010): out = alpha_p * x^2 + beta * x for x above 0, else alpha_n *
// (expm1(min(x, eps)) - x) + beta * x.
struct Xielu {
  float alpha_p = 0.8f;
  float alpha_n = 0.8f;
  float beta = 0.5f;
  float eps = -1e-6f;
};
void Activate(const Exec& exec, const Xielu& unit, MatrixView<const float> x, LinearRows& out);

// Every element to the nearest number in [-limit, limit], in place; NaN stays.
void Clamp(const Exec& exec, float limit, MatrixView<float> x);

// x *= factor.
void Scale(const Exec& exec, float factor, MatrixView<float> x);

// x *= sigmoid(gates), element by element.
void MultiplyBySigmoids(const Exec& exec, MatrixView<const float> gates, MatrixView<float> x);
// Every row of x times the sigmoid of its gate: gates [rows, 1].
void ScaleRowsBySigmoids(const Exec& exec, MatrixView<const float> gates, MatrixView<float> x);

// Every element to cap * tanh(x / cap), in place.
void SoftCap(const Exec& exec, float cap, MatrixView<float> x);

// x += y.
void Add(const Exec& exec, MatrixView<const float> y, MatrixView<float> x);

}  // namespace godwit::ops
