// Some linear layers of a model, and what has to be seen of it to know how they are smoothed.
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
  int64_t layers = 0;                         // the first ones of the model, up to the last chosen
  // All linear layers of the decoder layers in which they are, by name: those with which they share
  // smoothing groups are among them.
  std::set<std::string, std::less<>> neighbours;
};

// which: the number of a decoder layer, for all of its linear layers; or the name of a linear layer
// or of a part of one, where * stands for anything ("*.down_proj"). Throws Error(kInput) with what
// there is where nothing is chosen.
ChosenLinears ChooseLinears(const ModelTensors& tensors, const std::string& which);

// Of these groups, those in the decoder layers of the chosen.
std::vector<SmoothGroup> GroupsOf(const ChosenLinears& chosen, std::vector<SmoothGroup> groups);

}  // namespace godwit::quant
