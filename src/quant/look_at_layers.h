// What goes into linear layers, channel by channel, and what smoothing makes of it (figure 3.2 of
// the SmoothQuant thesis). Nothing is quantized.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model_folder.h"
#include "ops/exec.h"
#include "quant/chosen_linears.h"
#include "quant/quantize_model.h"

namespace godwit::quant {

struct LayersToLookAt {
  ChosenLinears chosen;
  QuantPlan plan;            // with the groups whose factors are needed
  bool whole_model = false;  // else the decoder layers up to the last chosen one
};

// which: as ChooseLinears takes it. Points into the folder. Throws as ChooseLinears does, and
// Error(kUnsupported) for a model that is quantized.
LayersToLookAt PlanLook(const ModelFolder& model, const std::string& which, SmoothKind smooth,
                        const SmoothOptions& alpha);

// [inputs] each.
struct ChannelMaxima {
  std::vector<float> inputs;   // of what goes in; empty if no token of the text reached the layer
  std::vector<float> weights;  // of what reads it
};

struct LinearMaxima {
  std::string name;  // with all parts that are computed as one
  ChannelMaxima before;
  std::optional<ChannelMaxima> after;  // none: nothing of it is smoothed
};

struct LayersSeen {
  Smoothing smoothing;
  std::vector<LinearMaxima> linears;
};

LayersSeen LookAtLayers(const Exec& exec, const ModelFolder& model, const LayersToLookAt& layers,
                        const SmoothOptions& alpha, std::span<const std::vector<int32_t>> pieces,
                        const StageHooks& hooks);

}  // namespace godwit::quant
