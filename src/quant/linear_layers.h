// The linear layers of a model, one for every packed Weight.
#pragma once

#include <functional>
#include <string>

#include "model/model_tensors.h"

namespace godwit::quant {

// Calls visit for the linear layers of a decoder layer, experts included, in the order in which
// they run; not for the router and for what makes keys and values of latent vectors, which stay in
// float.
void ForEachLinear(const LayerTensors& layer,
                   const std::function<void(const LinearTensors& linear)>& visit);

// Whether a user who writes `pattern` means the module, where * stands for anything
// ("*.down_proj").
bool MatchesName(const std::string& pattern, const std::string& module);

// "down_proj" of "model.layers.0.mlp.down_proj".
std::string LastName(const std::string& module);

// With all of its parts: "model.layers.0.self_attn.q_proj, k_proj, v_proj".
std::string FullName(const LinearTensors& linear);

}  // namespace godwit::quant
