// Some linear layers of a model, and all layers that must be seen to know how these are smoothed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model/model_tensors.h"
#include "quant/smooth_groups.h"

namespace godwit::quant {

struct ChosenLinears {
  std::vector<const LinearTensors*> linears;  // in the order of the model
  int64_t layers = 0;                         // decoder layers from the first to the last chosen
  // All linear layers of the chosen decoder layers, by name. The chosen layers share smoothing
  // groups with these alone.
  std::set<std::string, std::less<>> neighbours;
};

// which: the number of a decoder layer, for all of its linear layers, or the name of a linear layer
// or of its part. * stands for anything ("*.down_proj"). Throws Error(kInput) that says what there
// is if nothing is chosen.
ChosenLinears ChooseLinears(const ModelTensors& tensors, const std::string& which);

// The groups that have a reader in the decoder layers of the chosen.
std::vector<SmoothGroup> GroupsOf(const ChosenLinears& chosen, std::vector<SmoothGroup> groups);

}  // namespace godwit::quant
