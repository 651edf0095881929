#include "quant/quantize_model.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/new_folder.h"
#include "checkpoint/hf_files.h"
#include "quant/calibrate.h"
#include "quant/check_disk.h"
#include "quant/linear_layers.h"
#include "quant/quantization_block.h"
#include "quant/round_by_text.h"
#include "quant/stage_hooks.h"
#include "quant/static_scales.h"
#include "quant/write_checkpoint.h"

namespace godwit::quant {
namespace {

namespace fs = std::filesystem;

struct Calibrated {
  Smoothing smoothing;
  InputMaxima input_maxima;
  GroupedMatrices rounded;
};

// The first layer whose inputs are no multiple of the group. Null: there is none.
const LinearTensors* FindIndivisible(int64_t group, const QuantPlan& plan) {
  const auto found = std::ranges::find_if(plan.linears, [&](const LinearTensors* linear) {
    return !plan.int8.contains(linear) && linear->inputs() % group != 0;
  });
  return found == plan.linears.end() ? nullptr : *found;
}

void CheckGroups(const QuantPlan& plan, const Scheme& scheme) {
  if (!scheme.has_groups()) return;
  const LinearTensors* const undivided = FindIndivisible(scheme.group, plan);
  if (undivided == nullptr) return;
  const std::string name = ModuleName(*undivided);
  const auto fits = std::ranges::find_if(
      kGroups, [&](int64_t group) { return FindIndivisible(group, plan) == nullptr; });
  Throw(ErrorKind::kInput, "{} has {} inputs, which is no multiple of the group size {}: {}", name,
        undivided->inputs(), scheme.group,
        fits != std::end(kGroups)
            ? fmt::format("try --group-size {}", *fits)
            : fmt::format("give it 8 bits with --int8 '*.{}'", LastName(name)));
}

// Observes the layers' inputs, and smooths, rounds and sets input scales by them.
Calibrated CalibrateAndSmooth(const Exec& exec, const ModelFolder& model, const QuantPlan& plan,
                              const QuantizeOptions& options,
                              std::span<const std::vector<int32_t>> pieces,
                              const StageHooks& hooks) {
  Calibrated result;
  if (!options.calibrates()) return result;
  const auto decoder = LoadLayers(exec, model, model.spec().layers, hooks);
  Calibration calibration;
  if (options.smooths() || options.has_fixed_scales()) {
    calibration = Calibrate(exec, *decoder, pieces, ProgressOf(Stage::kCalibrating, hooks),
                            {.samples = options.searches() || options.searches_clipping()});
    result.smoothing = Smooth(exec, plan, options.scheme, calibration, options.smoothing(),
                              ProgressOf(Stage::kSmoothing, hooks));
  }
  const Scalings& scalings = result.smoothing.scalings;
  if (options.rounds_by_text()) {
    calibration.clear();
    result.rounded = RoundByText(exec, *decoder, pieces, plan, options.scheme, scalings, hooks);
  }
  if (!options.has_fixed_scales()) return result;
  result.input_maxima = StaticMaxima(plan, calibration, scalings);
  if (!options.searches_clipping() && options.clip_share == 0) return result;
  const std::vector<double> shares =
      options.searches_clipping() ? ClipGrid() : std::vector{options.clip_share};
  const auto clipped = ClippedMaxima(exec, *decoder, pieces, plan.linears, scalings, shares,
                                     ProgressOf(Stage::kFixedScales, hooks));
  if (options.searches_clipping()) {
    result.input_maxima = BestClipping(exec, plan, options.scheme, calibration, scalings, clipped);
    return result;
  }
  for (const auto& [name, maxima] : clipped) result.input_maxima[name] = maxima.front();
  return result;
}

// Subtracts 1 from weights of norms that transformers stores less 1, besides any other change.
void TakeOneOffGains(const ModelFolder& model, Scalings& scalings) {
  if (!GainsAreWhole(model)) return;
  for (const std::string& name : model.weights().Names()) {
    if (name.ends_with("norm.weight")) scalings[name].added = -1;
  }
}

}  // namespace

SmoothKind QuantizeOptions::smooth_kind() const {
  return smooth.value_or(scheme.smooth ? SmoothKind::kNorm : SmoothKind::kNone);
}

SmoothOptions QuantizeOptions::smoothing() const {
  const SmoothOptions preset{.search =
                                 scheme.has_groups() ? AlphaSearch::kPerGroup : AlphaSearch::kNone};
  return alpha.value_or(preset);
}

ModelPlan PlanModel(const ModelFolder& model, const QuantizeOptions& options) {
  RefuseQuantized(model.config(), model.path());
  RequireHfForm(model);
  ModelPlan plan{.plan = PlanQuantization(model.spec(), model.tensors(), options.smooth_kind(),
                                          options.keep, options.int8)};
  if (options.scheme.is_bitsandbytes() && !plan.plan.unstacked.empty()) {
    Throw(ErrorKind::kUnsupported,
          "a {} checkpoint stores a matrix of all experts as one tensor, which bitsandbytes does "
          "not quantize: use another scheme",
          model.spec().family);
  }
  CheckGroups(plan.plan, options.scheme);
  for (const std::string& name : model.weights().Names()) {
    plan.before_bytes += std::ssize(model.weights().Find(name)->bytes);
  }
  for (const NewTensor& tensor : PlanTensors(model.weights(), plan.plan, options.scheme)) {
    plan.after_bytes += tensor.bytes();
  }
  return plan;
}

Smoothing QuantizeModel(const Exec& exec, const ModelFolder& model, const ModelPlan& plan,
                        const QuantizeOptions& options,
                        std::span<const std::vector<int32_t>> pieces,
                        const std::filesystem::path& to, const StageHooks& hooks) {
  NewFolder folder(to);
  CheckDisk(folder.path().parent_path(), plan.after_bytes);
  Calibrated calibrated = CalibrateAndSmooth(exec, model, plan.plan, options, pieces, hooks);
  const fs::path from = model.is_gguf() ? folder.path() : fs::path(model.path());
  if (model.is_gguf()) WriteHfFiles(model, folder.path(), hooks.warn);
  TakeOneOffGains(model, calibrated.smoothing.scalings);
  WriteCheckpoint(exec,
                  {.from = from,
                   .source = model.weights(),
                   .plan = plan.plan,
                   .scheme = options.scheme,
                   .scalings = calibrated.smoothing.scalings,
                   .input_maxima = calibrated.input_maxima,
                   .rounded = calibrated.rounded},
                  folder.path(), ProgressOf(Stage::kWriting, hooks));
  folder.Commit();
  return std::move(calibrated.smoothing);
}

}  // namespace godwit::quant
