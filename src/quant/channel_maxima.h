// The largest magnitudes of the input channels of a linear layer: of its inputs, and of the weights
// that read them. Smoothing balances the two, and `inspect --activations` shows them (figure 3.2 of
// the SmoothQuant thesis).
#pragma once

#include <vector>

#include "ops/exec.h"
#include "quant/calibrate.h"
#include "quant/scaled_tensor.h"

namespace godwit::quant {

// [inputs] of the layer's inputs, divided by the factors of its columns. Empty if no token reached
// the layer.
std::vector<float> LargestInputs(const LinearTensors& linear, const Calibration& calibration,
                                 const Scalings& scalings);

// [inputs] of the scaled weight, over all outputs of all parts. Throws Error(kUnsupported) that
// names a tensor with NaN or infinity.
std::vector<float> LargestWeights(const Exec& exec, const LinearTensors& linear,
                                  const Scalings& scalings);

}  // namespace godwit::quant
