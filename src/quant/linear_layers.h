// The linear layers of a model, one for every packed Weight.
#pragma once

#include <functional>
#include <string>

#include "model/model_tensors.h"

namespace godwit::quant {

// Calls visit for the linear layers of a decoder layer, experts included, in the order in which
// they run. The router, the weights of an index's heads, and layers that make keys and values of
// latent vectors, stay in float and are left out.
void ForEachLinear(const LayerTensors& layer,
                   const std::function<void(const LinearTensors& linear)>& visit);

// Whether the pattern of a user means the module. * stands for anything ("*.down_proj").
bool MatchesName(const std::string& pattern, const std::string& module);

// The last part of a name: "down_proj" of "model.layers.0.mlp.down_proj".
std::string LastName(const std::string& module);

// The name of a layer with all parts: "model.layers.0.self_attn.q_proj, k_proj, v_proj".
std::string FullName(const LinearTensors& linear);

}  // namespace godwit::quant
