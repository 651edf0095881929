// Fixed scales for the inputs of linear layers (scheme o3).
#pragma once

#include <map>
#include <string>

#include "quant/calibrate.h"
#include "quant/quant_plan.h"

namespace godwit::quant {

// The largest input that a layer tells apart, by the name of the packed weight. The parts of one
// weight (q, k and v; gate and up) share it. Its StoredScale is the scale.
using InputMaxima = std::map<std::string, float, std::less<>>;

// The largest magnitude of each smoothed input on the calibration text. Throws Error(kInput) that
// names a layer which the text never reached: an expert, perhaps.
InputMaxima StaticMaxima(const QuantPlan& plan, const Calibration& calibration,
                         const Scalings& scalings);

}  // namespace godwit::quant
