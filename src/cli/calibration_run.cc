#include "cli/calibration_run.h"

#include "base/cores.h"
#include "base/quote.h"
#include "cli/options/text_input.h"
#include "cli/terminal/format.h"
#include "cli/terminal/output.h"
#include "cli/terminal/progress_line.h"
#include "kernels/dispatch.h"
#include "quant/first_layers.h"
#include "quant/quantization_block.h"

namespace godwit::cli {
namespace {

// Warned first, since the threads are there from then on.
int Threads(const ModelOptions& options) {
  WarnAboutThreads(options.threads);
  return options.threads == 0 ? AvailableCores() : options.threads;
}

}  // namespace

ModelFolder OpenFloatModel(const std::string& folder) {
  ModelFolder model(folder);
  quant::RefuseQuantized(model.config(), folder);
  WarnAboutSpec(model.spec());
  return model;
}

quant::CalibrationText ReadCalibrationText(const ModelFolder& model,
                                           const CalibrationInput& options) {
  auto text =
      quant::CutCalibrationText(model.spec(), *model.tokenizer(),
                                ReadInputFile(*options.file, options.lossy), options.pieces);
  if (text.short_text) {
    WriteNotice(fmt::format(
        "godwit: warning: {} has text for {} of {} tokens, not for {}: taking all of it\n",
        QuoteUnlessPlain(*options.file), Plural(std::ssize(text.pieces), "piece"),
        options.pieces.seq_len, options.pieces.samples));
  }
  return text;
}

Computation::Computation(const ModelOptions& options)
    : pool_(Threads(options)),
      exec_{.pool = pool_,
            .kernels = *kernels::SelectIsa(options.isa).table,
            .workspace = workspace_,
            .cancel = &cancel_},
      on_interrupt_(cancel_, /*presses_to_exit=*/2) {}

std::unique_ptr<Decoder> LoadLayers(const Exec& exec, const ModelFolder& model, int64_t layers) {
  ProgressLine progress("loading the model", ProgressUnit::kBytes);
  return quant::LoadFirstLayers(
      model.spec(), model.weights(), layers, exec.pool,
      {.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); },
       .warn = [&](const std::string& message) { progress.Say("godwit: warning: " + message); },
       .cancel = exec.cancel});
}

quant::Calibration RunCalibration(const Exec& exec, const Decoder& decoder,
                                  const quant::CalibrationText& text,
                                  const quant::CalibrationScope& scope) {
  ProgressLine progress("calibrating", ProgressUnit::kTokens);
  return quant::Calibrate(
      exec, decoder, text.pieces,
      [&](int64_t done, int64_t total) { progress.Update(done, total); }, scope);
}

quant::Smoothing RunSmoothing(const Exec& exec, const quant::QuantPlan& plan,
                              const quant::Scheme& scheme, const quant::Calibration& calibration,
                              const SmoothingOptions& options) {
  ProgressLine progress("smoothing", ProgressUnit::kBytes);
  return quant::Smooth(exec, plan, scheme, calibration, options.how(),
                       [&](int64_t done, int64_t total) { progress.Update(done, total); });
}

}  // namespace godwit::cli
