// What verbs have in common that drive a model themselves: where its caches lie; and of `quantize`
// and `inspect --activations`, which look at a float model, the text that it reads. Progress goes
// to standard error.
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
#include "ops/exec.h"
#include "quant/calibration_text.h"
#include "quant/quantize_model.h"
#include "quant/smooth.h"
#include "tensor/workspace.h"

namespace godwit::lab {

// Null where the flags say nothing: as memory allows. Throws what KvFile does.
std::shared_ptr<KvPool> PoolOf(const cli::KvMemory& memory, const KvLayout& layout);

// As the flags say; nothing where they do not.
std::optional<quant::SmoothKind> SmoothKindOf(const cli::SmoothingFlags& flags);
std::optional<quant::SmoothOptions> SmoothOptionsOf(const cli::SmoothingFlags& flags);

// Warns where there is less text than asked for.
quant::CalibrationText ReadCalibrationText(const ModelFolder& model,
                                           const cli::CalibrationFlags& flags);

// Threads, kernels, memory and a progress line for each stage. While it lives, Ctrl-C cancels;
// pressed twice, it leaves at once.
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
