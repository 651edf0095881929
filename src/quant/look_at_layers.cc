#include "quant/look_at_layers.h"

#include <algorithm>
#include <utility>

#include "quant/calibrate.h"
#include "quant/channel_maxima.h"
#include "quant/linear_layers.h"
#include "quant/quantization_block.h"
#include "quant/stage_hooks.h"

namespace godwit::quant {
namespace {

LinearMaxima Measure(const Exec& exec, const LinearTensors& linear, const Calibration& calibration,
                     const Scalings& scalings) {
  const auto measured = [&](const Scalings& with) -> ChannelMaxima {
    return {.inputs = LargestInputs(linear, calibration, with),
            .weights = LargestWeights(exec, linear, with)};
  };
  LinearMaxima maxima{.name = FullName(linear), .before = measured({})};
  const bool smoothed = std::ranges::any_of(
      linear.parts, [&](const TensorInfo* part) { return scalings.contains(part->name); });
  if (smoothed) maxima.after = measured(scalings);
  return maxima;
}

}  // namespace

LayersToLookAt PlanLook(const ModelFolder& model, const std::string& which, SmoothKind smooth,
                        const SmoothOptions& alpha) {
  RefuseQuantized(model.config(), model.path());
  LayersToLookAt look{.chosen = ChooseLinears(model.tensors(), which),
                      .plan = PlanQuantization(model.spec(), model.tensors(), smooth, /*keep=*/{}),
                      // One alpha for the model needs all layers.
                      .whole_model = alpha.search == AlphaSearch::kGlobal};
  std::vector<SmoothGroup>& groups = look.plan.smooth.groups;
  if (!look.whole_model) groups = GroupsOf(look.chosen, std::move(groups));
  return look;
}

LayersSeen LookAtLayers(const Exec& exec, const ModelFolder& model, const LayersToLookAt& layers,
                        const SmoothOptions& alpha, std::span<const std::vector<int32_t>> pieces,
                        const StageHooks& hooks) {
  CalibrationScope scope{.samples = alpha.search != AlphaSearch::kNone};
  if (!layers.whole_model) scope.linears = layers.chosen.neighbours;
  const auto decoder = LoadLayers(
      exec, model, layers.whole_model ? model.spec().layers : layers.chosen.layers, hooks);
  const Calibration calibration =
      Calibrate(exec, *decoder, pieces, ProgressOf(Stage::kCalibrating, hooks), scope);
  LayersSeen seen;
  // No layer is quantized, but a search for alpha needs the cost of it.
  seen.smoothing = Smooth(exec, layers.plan, kDefaultScheme, calibration, alpha,
                          ProgressOf(Stage::kSmoothing, hooks));
  for (const LinearTensors* linear : layers.chosen.linears) {
    seen.linears.push_back(Measure(exec, *linear, calibration, seen.smoothing.scalings));
  }
  return seen;
}

}  // namespace godwit::quant
