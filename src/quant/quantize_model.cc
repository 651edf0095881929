#include "quant/quantize_model.h"

#include <memory>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/new_folder.h"
#include "base/quote.h"
#include "quant/calibrate.h"
#include "quant/quantization_block.h"
#include "quant/stage_hooks.h"
#include "quant/static_scales.h"
#include "quant/write_checkpoint.h"

namespace godwit::quant {
namespace {

void CheckDisk(const std::filesystem::path& folder, int64_t bytes) {
  const auto free = static_cast<int64_t>(std::filesystem::space(folder).available);
  if (free >= bytes) return;
  Throw(ErrorKind::kIo, "{}: the result takes {}, and {} are free there",
        QuoteUnlessPlain(folder.native()), FormatBytes(bytes), FormatBytes(free));
}

struct Calibrated {
  Smoothing smoothing;
  InputMaxima input_maxima;
};

// What the layers see, and what follows from it.
Calibrated CalibrateAndSmooth(const Exec& exec, const ModelFolder& model, const QuantPlan& plan,
                              const QuantizeOptions& options,
                              std::span<const std::vector<int32_t>> pieces,
                              const StageHooks& hooks) {
  Calibrated result;
  if (!options.calibrates()) return result;
  const auto decoder = LoadLayers(exec, model, model.spec().layers, hooks);
  const Calibration calibration =
      Calibrate(exec, *decoder, pieces, ProgressOf(Stage::kCalibrating, hooks),
                {.samples = options.searches()});
  result.smoothing = Smooth(exec, plan, *options.scheme, calibration, options.alpha,
                            ProgressOf(Stage::kSmoothing, hooks));
  const Scalings& scalings = result.smoothing.scalings;
  if (!options.has_fixed_scales()) return result;
  result.input_maxima = StaticMaxima(plan, calibration, scalings);
  if (options.clip_share > 0) {
    result.input_maxima = ClippedMaxima(exec, *decoder, pieces, scalings, options.clip_share,
                                        ProgressOf(Stage::kFixedScales, hooks));
  }
  return result;
}

}  // namespace

SmoothKind QuantizeOptions::smooth_kind() const {
  return smooth.value_or(scheme->smooth ? SmoothKind::kNorm : SmoothKind::kNone);
}

ModelPlan PlanModel(const ModelFolder& model, const QuantizeOptions& options) {
  model.RequireHfFiles("quantizing");
  RefuseQuantized(model.config(), model.path());
  ModelPlan plan{
      .plan = PlanQuantization(model.spec(), model.tensors(), options.smooth_kind(), options.keep)};
  for (const std::string& name : model.weights().Names()) {
    plan.before_bytes += std::ssize(model.weights().Find(name)->bytes);
  }
  for (const NewTensor& tensor : PlanTensors(model.weights(), plan.plan, *options.scheme)) {
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
  WriteCheckpoint(exec,
                  {.from = model.path(),
                   .source = model.weights(),
                   .plan = plan.plan,
                   .scheme = *options.scheme,
                   .scalings = calibrated.smoothing.scalings,
                   .input_maxima = calibrated.input_maxima},
                  folder.path(), ProgressOf(Stage::kWriting, hooks));
  folder.Commit();
  return std::move(calibrated.smoothing);
}

}  // namespace godwit::quant
