#include "lab/model_run.h"

#include <utility>

#include "base/cores.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "checkpoint/packed_copy.h"
#include "console/options/parse_value.h"
#include "console/options/text_input.h"
#include "console/terminal/format.h"
#include "console/terminal/output.h"
#include "engine/model_device.h"
#include "engine/storage_types.h"
#include "kernels/dispatch.h"

namespace godwit::lab {
namespace {

struct StageName {
  const char* label;
  console::ProgressUnit unit;
};
// Names of stages, in the order of quant::Stage.
constexpr StageName kStages[] = {{"loading the model", console::ProgressUnit::kBytes},
                                 {"calibrating", console::ProgressUnit::kTokens},
                                 {"smoothing", console::ProgressUnit::kBytes},
                                 {"rounding", console::ProgressUnit::kTokens},
                                 {"finding the fixed scales", console::ProgressUnit::kTokens},
                                 {"quantizing and writing", console::ProgressUnit::kBytes}};

// The warning comes first, because the threads exist from then on.
int Threads(const cli::ModelOptions& options) {
  cli::WarnAboutThreads(options.threads);
  return ThreadsFor(options.threads);
}

}  // namespace

std::shared_ptr<KvPool> PoolOf(const cli::KvMemory& memory, const KvLayout& layout) {
  if (memory.bytes == 0 && memory.file.empty()) return nullptr;
  auto budget = std::make_shared<KvBudget>(memory.bytes > 0 ? memory.bytes
                                                            : ReadMachineMemory().available_bytes);
  if (memory.file.empty()) return std::make_shared<KvPool>(layout, std::move(budget));
  return std::make_shared<KvPool>(
      layout, std::make_shared<KvFile>(memory.file, memory.file_bytes, std::move(budget)));
}

std::unique_ptr<Decoder> LoadAsAsked(const ModelFolder& model, const cli::ModelOptions& options,
                                     ThreadPool& pool, const LoadHooks& hooks) {
  auto gpu = OpenDevice(options.device, options.gpu_memory_bytes);
  auto decoder =
      LoadModel(model, pool, hooks, ParseWeightType(options.weights), cli::PackedCopy(options));
  PlaceOnDevice(*decoder, std::move(gpu), LoadOptions().step_tokens);
  return decoder;
}

std::optional<quant::SmoothKind> SmoothKindOf(const cli::SmoothingFlags& flags) {
  if (!flags.smooth) return std::nullopt;
  if (*flags.smooth == "none") return quant::SmoothKind::kNone;
  return *flags.smooth == "all" ? quant::SmoothKind::kAll : quant::SmoothKind::kNorm;
}

std::optional<quant::SmoothOptions> SmoothOptionsOf(const cli::SmoothingFlags& flags) {
  if (!flags.alpha) return std::nullopt;
  if (*flags.alpha == "auto") return quant::SmoothOptions{.search = quant::AlphaSearch::kGlobal};
  if (*flags.alpha == "per-layer") {
    return quant::SmoothOptions{.search = quant::AlphaSearch::kPerGroup};
  }
  return quant::SmoothOptions{.alpha = console::ParseFloat(*flags.alpha)};
}

quant::CalibrationText ReadCalibrationText(const ModelFolder& model,
                                           const cli::CalibrationFlags& flags) {
  auto text = quant::CutCalibrationText(model.spec(), *model.tokenizer(),
                                        console::ReadInputFile(*flags.file, flags.lossy),
                                        {.samples = flags.samples, .seq_len = flags.seq_len});
  if (text.short_text) {
    console::WriteNotice(fmt::format(
        "godwit: warning: {} has text for only {} of {} tokens, not for {}: using all of it\n",
        QuoteUnlessPlain(*flags.file), console::Plural(std::ssize(text.pieces), "piece"),
        flags.seq_len, flags.samples));
  }
  return text;
}

CalibrationRun::CalibrationRun(const cli::ModelOptions& options)
    : pool_(Threads(options)),
      exec_{.pool = pool_,
            .kernels = *kernels::SelectIsa(options.isa).table,
            .workspace = workspace_,
            .cancel = &cancel_},
      on_interrupt_(cancel_, /*presses_to_exit=*/2),
      hooks_{.progress = [this](quant::Stage stage, int64_t done,
                                int64_t total) { Show(stage, done, total); },
             .warn =
                 [this](const std::string& message) {
                   const std::string line = "godwit: warning: " + message;
                   progress_ ? progress_->Say(line) : console::WriteNotice(line + "\n");
                 }} {}

void CalibrationRun::Show(quant::Stage stage, int64_t done, int64_t total) {
  if (stage != stage_) {
    const StageName& name = kStages[static_cast<size_t>(stage)];
    progress_.reset();
    progress_.emplace(name.label, name.unit);
    stage_ = stage;
  }
  progress_->Update(done, total);
}

}  // namespace godwit::lab
