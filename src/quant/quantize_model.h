// A float model in a folder becomes one of integers in another: calibrate, smooth, quantize, write.
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
  kRounding,     // tokens, as often as the layers are looked at
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
  Scheme scheme = kDefaultScheme;
  std::optional<SmoothKind> smooth;     // none: norms, where the scheme is for smoothing
  std::optional<SmoothOptions> alpha;   // none: of 4 bits the best one for each group, else 0.5
  bool compensates = true;              // 4-bit weights make up for the rounding of others
  std::vector<std::string> keep, int8;  // as PlanQuantization takes them
  double clip_share = 0;                // of the tokens, that may go beyond fixed scales

  SmoothKind smooth_kind() const;
  SmoothOptions smoothing() const;
  bool smooths() const { return smooth_kind() != SmoothKind::kNone; }
  bool searches() const { return smooths() && smoothing().search != AlphaSearch::kNone; }
  bool has_fixed_scales() const { return scheme.input == InputScale::kStatic; }
  bool rounds_by_text() const { return scheme.has_groups() && compensates; }
  bool calibrates() const { return smooths() || has_fixed_scales() || rounds_by_text(); }
};

// The plan, and bytes of the weights without it and with it.
struct ModelPlan {
  QuantPlan plan;
  int64_t before_bytes = 0;
  int64_t after_bytes = 0;
};

// The plan points into the folder. Throws Error(kUnsupported) for a model that is quantized,
// Error(kInput) that names a layer whose inputs the groups of the scheme do not divide, and as
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
