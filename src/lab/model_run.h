// The shared parts of verbs that drive a model themselves: the place of its caches, and the text
// for `quantize` and `inspect --activations`. Progress goes to standard error.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/cancel.h"
#include "base/thread_pool.h"
#include "checkpoint/model_folder.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/smoothing_options.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/progress_line.h"
#include "kv/kv_pool.h"
#include "model/decoder.h"
#include "model/loader.h"
#include "ops/exec.h"
#include "quant/calibration_text.h"
#include "quant/quantize_model.h"
#include "quant/smooth.h"
#include "tensor/workspace.h"

namespace godwit::lab {

// The pool that the flags ask for; null: they ask for none, and memory is the limit. Throws what
// KvFile does.
std::shared_ptr<KvPool> PoolOf(const cli::KvMemory& memory, const KvLayout& layout);

// Loads a model as the flags say. Its layers compute on the GPU that they name, which is opened
// first. Throws as OpenDevice, LoadModel and PlaceOnDevice do.
std::unique_ptr<Decoder> LoadAsAsked(const ModelFolder& model, const cli::ModelOptions& options,
                                     ThreadPool& pool, const LoadHooks& hooks);

// The values of the flags; nothing if they are not set.
std::optional<quant::SmoothKind> SmoothKindOf(const cli::SmoothingFlags& flags);
std::optional<quant::SmoothOptions> SmoothOptionsOf(const cli::SmoothingFlags& flags);

// The calibration text. Warns if there is less text than asked for.
quant::CalibrationText ReadCalibrationText(const ModelFolder& model,
                                           const cli::CalibrationFlags& flags);

// A run with threads, kernels, memory and a progress line for each stage. While it lives, Ctrl-C
// cancels; pressed twice, it leaves at once.
class CalibrationRun {
 public:
  explicit CalibrationRun(const cli::ModelOptions& options);
  const Exec& exec() const { return exec_; }
  const quant::StageHooks& hooks() const { return hooks_; }

 private:
  void Show(quant::Stage stage, int64_t done, int64_t total);

  ThreadPool pool_;
  Workspace workspace_;
  CancelToken cancel_;
  Exec exec_;
  console::CancelOnInterrupt on_interrupt_;
  std::optional<quant::Stage> stage_;
  std::optional<console::ProgressLine> progress_;
  quant::StageHooks hooks_;
};

}  // namespace godwit::lab
