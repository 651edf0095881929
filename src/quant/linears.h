// The linear layers of a model, one for every packed Weight.
#pragma once

#include <functional>

#include "model/model_tensors.h"

namespace godwit::quant {

// Calls visit for the linear layers of a decoder layer, experts included, in the order in which
// they run; not for the router, which stays in float.
void ForEachLinear(const LayerTensors& layer,
                   const std::function<void(const LinearTensors& linear)>& visit);

}  // namespace godwit::quant
