// 4-bit weights that make up for one another's rounding errors on the calibration text.
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

// Quantizes every 4-bit weight of the plan whose layer the text reached, with a RoundingFeedback of
// the layer's inputs (QuantizeInGroups). A warning counts the layers that it did not reach
// (experts, perhaps). The text is run as often as memory demands. The sums of one run take at most
// half of the free memory, or are those of a single layer. Inputs are those of the float model, so
// no layer waits for another.
GroupedMatrices RoundByText(const Exec& exec, const Decoder& decoder,
                            std::span<const std::vector<int32_t>> pieces, const QuantPlan& plan,
                            const Scheme& scheme, const Scalings& scalings,
                            const StageHooks& hooks);

}  // namespace godwit::quant
