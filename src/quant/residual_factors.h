// Factors on the residual branch, simulated (section 3.3 of the SmoothQuant thesis, after Outlier
// Suppression, arXiv 2209.13325). A linear layer that reads a residual sum has no norm before it
// that could take its factors. An extra product divides each token, on the branch alone.
//
// No format of checkpoints holds such a product. One s for the whole stream would fold, exactly:
// into the embedding, the gains of norms behind blocks, and the weights of all readers. The last
// norm does not fold, because it divides by the root mean square of x / s and not of x. The logits
// of each token are then multiplied by a number of its own. Greedy texts stay, probabilities do
// not.
#pragma once

#include "model/model_tensors.h"
#include "model/spec.h"
#include "ops/exec.h"
#include "quant/calibrate.h"
#include "quant/simulated_inputs.h"

namespace godwit::quant {

// Whether a linear layer of the model reads a residual sum.
bool ReadsResidualSums(const DecoderSpec& spec, const ModelTensors& tensors);

// s_j of each layer that reads a residual sum (equation 3.4), by the name of the packed weight.
// Layers that read the same sum share them.
ChannelValues ResidualFactors(const Exec& exec, const DecoderSpec& spec,
                              const ModelTensors& tensors, const Calibration& calibration,
                              float alpha);

}  // namespace godwit::quant
