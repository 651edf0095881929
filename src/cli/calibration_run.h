// What the verbs have in common that look at a float model while it reads a text: `quantize` and
// `inspect --activations`. Progress goes to standard error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/cancel.h"
#include "base/thread_pool.h"
#include "checkpoint/model_folder.h"
#include "cli/options/model_options.h"
#include "cli/options/smoothing_options.h"
#include "cli/terminal/interrupt.h"
#include "model/decoder.h"
#include "ops/exec.h"
#include "quant/calibrate.h"
#include "quant/plan.h"
#include "quant/scheme.h"
#include "quant/smooth.h"
#include "tensor/workspace.h"

namespace godwit::cli {

// Warns of what the engine would warn of. Throws Error(kUnsupported) for a model that is quantized.
ModelFolder OpenFloatModel(const std::string& folder);

// Warns where there is less text than asked for.
quant::CalibrationText ReadCalibrationText(const ModelFolder& model,
                                           const CalibrationInput& options);

// Threads, kernels and memory. While it lives, Ctrl-C cancels; pressed twice, it leaves at once.
class Computation {
 public:
  explicit Computation(const ModelOptions& options);
  const Exec& exec() const { return exec_; }

 private:
  ThreadPool pool_;
  Workspace workspace_;
  CancelToken cancel_;
  Exec exec_;
  CancelOnInterrupt on_interrupt_;
};

// The first `layers` decoder layers of it, to be looked at.
std::unique_ptr<Decoder> LoadLayers(const Exec& exec, const ModelFolder& model, int64_t layers);

quant::Calibration RunCalibration(const Exec& exec, const Decoder& decoder,
                                  const quant::CalibrationText& text,
                                  const quant::CalibrationScope& scope);

quant::Smoothing RunSmoothing(const Exec& exec, const quant::QuantPlan& plan,
                              const quant::Scheme& scheme, const quant::Calibration& calibration,
                              const SmoothingOptions& options);

}  // namespace godwit::cli
