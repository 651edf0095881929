// The largest magnitudes of the input channels of a linear layer: of what goes in, and of the
// weights that read it. What smoothing balances, and what a look at it shows (figure 3.2 of the
// SmoothQuant thesis).
#pragma once

#include <vector>

#include "ops/exec.h"
#include "quant/calibrate.h"
#include "quant/scaled_tensor.h"

namespace godwit::quant {

// [inputs] of what went into the layer, with the factors of its columns taken out. Empty if nothing
// went in.
std::vector<float> LargestInputs(const LinearTensors& linear, const Calibration& calibration,
                                 const Scalings& scalings);

// [inputs] of the scaled weight, over all outputs of all parts. Throws Error(kUnsupported) that
// names a tensor which holds NaN or infinity.
std::vector<float> LargestWeights(const Exec& exec, const LinearTensors& linear,
                                  const Scalings& scalings);

}  // namespace godwit::quant
