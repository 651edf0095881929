// The cost of quantizing: how far the outputs of linear layers move on rows of the calibration
// text.
#pragma once

#include "model/model_tensors.h"
#include "ops/exec.h"
#include "quant/scaled_tensor.h"
#include "quant/scheme.h"
#include "tensor/view.h"

namespace godwit::quant {

struct OutputError {
  double difference = 0;  // sum of squares of exact minus quantized outputs
  double exact = 0;       // sum of squares of the exact outputs

  void Add(const OutputError& other) {
    difference += other.difference;
    exact += other.exact;
  }
  double relative() const { return exact > 0 ? difference / exact : 0; }
};

// The error of Q(x / s) Q(s W)^T, as the quantized model computes it in int8, against x W^T in f32.
// W is the weight with its rows divided as in `scalings`, and s are the factors of its columns.
// 4-bit weights are rounded to the nearest, and x / s stays in f32, whose rounding costs next to
// nothing beside theirs. rows: x [rows, inputs]. largest_input: of |x / s| in the whole
// calibration, for a static scale.
OutputError LinearOutputError(const Exec& exec, const LinearTensors& linear,
                              MatrixView<const float> rows, const Scalings& scalings,
                              const Scheme& scheme, float largest_input);

}  // namespace godwit::quant
