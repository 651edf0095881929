#include "quant/static_scales.h"

#include <algorithm>

#include "base/error.h"
#include "quant/channel_maxima.h"

namespace godwit::quant {

InputMaxima StaticMaxima(const QuantPlan& plan, const Calibration& calibration,
                         const Scalings& scalings) {
  InputMaxima maxima;
  for (const LinearTensors* linear : plan.linears) {
    const std::string name = ModuleName(*linear);
    const auto largest = LargestInputs(*linear, calibration, scalings);
    if (largest.empty()) {
      ThrowWith({ErrorCode::kNeverReached}, ErrorKind::kInput,
                "no token of the calibration text reaches {}, which needs a fixed scale: give a "
                "longer text, or keep this layer in float",
                name);
    }
    maxima[name] = std::ranges::max(largest);
  }
  return maxima;
}

}  // namespace godwit::quant
