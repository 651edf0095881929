// 4-bit weights that make up for one another's rounding on the calibration text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/decoder.h"
#include "ops/exec.h"
#include "quant/group_codes.h"
#include "quant/quant_plan.h"
#include "quant/quantize_model.h"
#include "quant/scaled_tensor.h"
#include "quant/scheme.h"

namespace godwit::quant {

// Every weight of 4 bits in the plan whose layer the text reached, as QuantizeInGroups makes it
// with a RoundingFeedback of the layer's inputs; who was not reached (an expert, perhaps) is warned
// of. Layers are looked at in as many runs of the text as the sums for them take memory: those of
// one run are not more than half of what is free, or than the largest layer's. Inputs are those of
// the model in float, so no layer waits for another.
GroupedMatrices RoundByText(const Exec& exec, const Decoder& decoder,
                            std::span<const std::vector<int32_t>> pieces, const QuantPlan& plan,
                            const Scheme& scheme, const Scalings& scalings,
                            const StageHooks& hooks);

}  // namespace godwit::quant
