// The linear layers of a model, one for every packed Weight.
#pragma once

#include <functional>
#include <string>

#include "model/model_tensors.h"

namespace godwit::quant {

// "model.layers.0.mlp.up_proj" of the tensor "model.layers.0.mlp.up_proj.weight".
std::string ModuleName(const TensorInfo& weight);

// That of its first part: what the packed Weight is called (model/loader.cc).
std::string ModuleName(const LinearTensors& linear);

// Calls visit for the linear layers of a decoder layer, experts included, in the order in which
// they run; not for the router, which stays in float.
void ForEachLinear(const LayerTensors& layer,
                   const std::function<void(const LinearTensors& linear)>& visit);

}  // namespace godwit::quant
