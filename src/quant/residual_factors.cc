#include "quant/residual_factors.h"

#include "quant/linear_layers.h"
#include "quant/smooth.h"
#include "quant/smooth_groups.h"

namespace godwit::quant {

bool ReadsResidualSums(const DecoderSpec& spec, const ModelTensors& tensors) {
  return !FindSmoothGroups(spec, tensors, SmoothKind::kNorm).residual.empty();
}

ChannelValues ResidualFactors(const Exec& exec, const DecoderSpec& spec,
                              const ModelTensors& tensors, const Calibration& calibration,
                              float alpha) {
  ChannelValues factors;
  for (const SmoothGroup& group : FindSmoothGroups(spec, tensors, SmoothKind::kNorm).residual) {
    const std::vector<float> s = SmoothingFactors(exec, group, calibration, alpha);
    for (const LinearTensors* linear : group.linears) factors[ModuleName(*linear)] = s;
  }
  return factors;
}

}  // namespace godwit::quant
