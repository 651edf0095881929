// The inputs of linear layers, channel by channel, and the effect of smoothing on them (figure 3.2
// of the SmoothQuant thesis). Nothing is quantized.
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
  QuantPlan plan;            // holds the groups whose factors are needed
  bool whole_model = false;  // else the decoder layers up to the last chosen
};

// which: as ChooseLinears takes it. The result points into the folder. Throws as ChooseLinears
// does, and Error(kUnsupported) for a model that is quantized.
LayersToLookAt PlanLook(const ModelFolder& model, const std::string& which, SmoothKind smooth,
                        const SmoothOptions& alpha);

// The largest magnitudes of the channels, [inputs] each.
struct ChannelMaxima {
  std::vector<float> inputs;   // of the inputs; empty if no token reached the layer
  std::vector<float> weights;  // of the weights that read them
};

struct LinearMaxima {
  std::string name;  // FullName
  ChannelMaxima before;
  std::optional<ChannelMaxima> after;  // none: the layer is not smoothed
};

struct LayersSeen {
  Smoothing smoothing;
  std::vector<LinearMaxima> linears;
};

LayersSeen LookAtLayers(const Exec& exec, const ModelFolder& model, const LayersToLookAt& layers,
                        const SmoothOptions& alpha, std::span<const std::vector<int32_t>> pieces,
                        const StageHooks& hooks);

}  // namespace godwit::quant
