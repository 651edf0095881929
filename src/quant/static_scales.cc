#include "quant/static_scales.h"

#include <algorithm>

#include "base/error.h"
#include "quant/channel_maxima.h"
#include "quant/output_error.h"

namespace godwit::quant {
namespace {

[[noreturn]] void ThrowNeverReached(const std::string& name) {
  ThrowWith({ErrorCode::kNeverReached}, ErrorKind::kInput,
            "no token of the calibration text reaches {}, which needs a fixed scale: give a "
            "longer text, or keep this layer in float",
            name);
}

}  // namespace

InputMaxima StaticMaxima(const QuantPlan& plan, const Calibration& calibration,
                         const Scalings& scalings) {
  InputMaxima maxima;
  for (const LinearTensors* linear : plan.linears) {
    const std::string name = ModuleName(*linear);
    const auto largest = LargestInputs(*linear, calibration, scalings);
    if (largest.empty()) ThrowNeverReached(name);
    maxima[name] = std::ranges::max(largest);
  }
  return maxima;
}

std::vector<double> ClipGrid() {
  std::vector<double> grid;
  for (int percent = 0; percent <= 10; ++percent) grid.push_back(percent / 100.0);
  return grid;
}

InputMaxima BestClipping(const Exec& exec, const QuantPlan& plan, const Scheme& scheme,
                         const Calibration& calibration, const Scalings& scalings,
                         const std::map<std::string, std::vector<float>, std::less<>>& clipped) {
  InputMaxima maxima;
  for (const LinearTensors* linear : plan.linears) {
    const std::string name = ModuleName(*linear);
    const auto seen = calibration.find(name);
    const auto tried = clipped.find(name);
    if (seen == calibration.end() || tried == clipped.end()) ThrowNeverReached(name);
    double least = 0;
    for (size_t i = 0; i < tried->second.size(); ++i) {
      const float largest = tried->second[i];
      if (i > 0 && largest == tried->second[i - 1]) continue;
      const double error = LinearOutputError(exec, *linear, seen->second.sample.rows(), scalings,
                                             plan.SchemeOf(*linear, scheme), largest)
                               .difference;
      if (i > 0 && error >= least) continue;
      least = error;
      maxima[name] = largest;
    }
  }
  return maxima;
}

}  // namespace godwit::quant
