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

// The slow steps, in this order, with the unit of their progress. Not every model needs all of
// them.
enum class Stage {
  kLoading,      // bytes of the weights
  kCalibrating,  // tokens
  kSmoothing,    // bytes of the weights
  kRounding,     // tokens, once for each run of the text
  kFixedScales,  // tokens
  kWriting,      // bytes of the weights
};

// The callbacks of a run; each may be empty.
struct StageHooks {
  std::function<void(Stage stage, int64_t done, int64_t total)> progress;
  // The callback for warnings: what the user should know although the work goes on.
  std::function<void(const std::string& message)> warn;
};

struct QuantizeOptions {
  Scheme scheme = kDefaultScheme;
  std::optional<SmoothKind> smooth;     // none: norms if the scheme is smoothed
  std::optional<SmoothOptions> alpha;   // none: the best for each group at 4 bits, else 0.5
  bool compensates = true;              // 4-bit weights make up for the rounding of others
  std::vector<std::string> keep, int8;  // as PlanQuantization takes them
  // The share of tokens that may exceed fixed scales; 0: none, or what the search of Outlier
  // Suppression finds.
  double clip_share = 0;

  SmoothKind smooth_kind() const;
  SmoothOptions smoothing() const;
  bool smooths() const { return smooth_kind() != SmoothKind::kNone; }
  bool searches() const { return smooths() && smoothing().search != AlphaSearch::kNone; }
  bool searches_clipping() const { return scheme.suppresses_outliers && clip_share == 0; }
  bool has_fixed_scales() const { return scheme.input == InputScale::kStatic; }
  bool rounds_by_text() const { return scheme.has_groups() && compensates; }
  bool calibrates() const { return smooths() || has_fixed_scales() || rounds_by_text(); }
};

// The plan, and the bytes of the weights before and after.
struct ModelPlan {
  QuantPlan plan;
  int64_t before_bytes = 0;
  int64_t after_bytes = 0;
};

// The plan points into the folder. Throws as PlanQuantization does, and Error(kUnsupported) for a
// model that is quantized. Throws Error(kInput) that names a layer whose inputs the scheme's groups
// do not divide.
ModelPlan PlanModel(const ModelFolder& model, const QuantizeOptions& options);

// pieces: the calibration text; not looked at if the options do not calibrate. `to` is a NewFolder.
// Throws Error(kIo), before any work, for a disk that cannot hold the result, and what the steps
// throw.
Smoothing QuantizeModel(const Exec& exec, const ModelFolder& model, const ModelPlan& plan,
                        const QuantizeOptions& options,
                        std::span<const std::vector<int32_t>> pieces,
                        const std::filesystem::path& to, const StageHooks& hooks);

}  // namespace godwit::quant
