// A float model in a folder becomes an int8 model in another: calibrate, smooth, quantize, write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model_folder.h"
#include "ops/exec.h"
#include "quant/quant_plan.h"
#include "quant/scheme.h"
#include "quant/smooth.h"

namespace godwit::quant {

// What takes a while, in this order; not every model needs all of it.
enum class Stage {
  kLoading,      // bytes of the weights
  kCalibrating,  // tokens
  kSmoothing,    // bytes of the weights
  kFixedScales,  // tokens
  kWriting,      // bytes of the weights
};

// May be empty.
struct StageHooks {
  std::function<void(Stage stage, int64_t done, int64_t total)> progress;
  // What the user should know although the work goes on.
  std::function<void(const std::string& message)> warn;
};

struct QuantizeOptions {
  const Scheme* scheme = &kDefaultScheme;
  std::optional<SmoothKind> smooth;  // none: norms, where the scheme is for smoothing
  SmoothOptions alpha;
  std::vector<std::string> keep;  // as PlanQuantization takes it
  double clip_share = 0;          // of the tokens, that may go beyond fixed scales

  SmoothKind smooth_kind() const;
  bool smooths() const { return smooth_kind() != SmoothKind::kNone; }
  bool searches() const { return smooths() && alpha.search != AlphaSearch::kNone; }
  bool has_fixed_scales() const { return scheme->input == InputScale::kStatic; }
  bool calibrates() const { return smooths() || has_fixed_scales(); }
};

// The plan, and bytes of the weights without it and with it.
struct ModelPlan {
  QuantPlan plan;
  int64_t before_bytes = 0;
  int64_t after_bytes = 0;
};

// The plan points into the folder. Throws Error(kUnsupported) for a model that is quantized, and as
// PlanQuantization does.
ModelPlan PlanModel(const ModelFolder& model, const QuantizeOptions& options);

// pieces: the calibration text; not looked at if the options do not calibrate. `to` is a NewFolder.
// Throws Error(kIo) for a disk that cannot hold the result, before any work, and what the steps
// throw.
Smoothing QuantizeModel(const Exec& exec, const ModelFolder& model, const ModelPlan& plan,
                        const QuantizeOptions& options,
                        std::span<const std::vector<int32_t>> pieces,
                        const std::filesystem::path& to, const StageHooks& hooks);

}  // namespace godwit::quant
