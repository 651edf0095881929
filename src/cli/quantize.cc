// godwit quantize: calibrate, smooth, quantize, write.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cores.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "base/new_folder.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "cli/exit_code.h"
#include "cli/options/model_options.h"
#include "cli/options/parse_value.h"
#include "cli/options/text_input.h"
#include "cli/quantize_report.h"
#include "cli/terminal/format.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output.h"
#include "cli/terminal/output_file.h"
#include "cli/terminal/progress_line.h"
#include "cli/verbs.h"
#include "kernels/dispatch.h"
#include "model/archs/all.h"
#include "model/loader.h"
#include "quant/calibration_text.h"
#include "quant/quantization_block.h"
#include "quant/write_checkpoint.h"
#include "text/load_tokenizer.h"
#include "weights/open.h"

namespace godwit::cli {
namespace {

struct QuantizeOptions {
  ModelOptions model;
  std::string output;
  const quant::Scheme* scheme = &quant::kSchemes[0];
  std::optional<quant::SmoothKind> kind;
  std::vector<std::string> keep;
  quant::SmoothOptions smooth;
  std::optional<std::string> text_file;
  quant::CalibrationOptions calibration;
  double clip_share = 0;
  bool dry_run = false;
  std::optional<std::string> plot;

  quant::SmoothKind smooth_kind() const {
    return kind.value_or(scheme->smooth ? quant::SmoothKind::kNorm : quant::SmoothKind::kNone);
  }
  bool smooths() const { return smooth_kind() != quant::SmoothKind::kNone; }
  bool fixed_scales() const { return scheme->input == quant::InputScale::kStatic; }
  bool calibrates() const { return smooths() || fixed_scales(); }
};

quant::SmoothKind ParseKind(const std::string& value) {
  if (value == "none") return quant::SmoothKind::kNone;
  if (value == "norm") return quant::SmoothKind::kNorm;
  if (value == "all") return quant::SmoothKind::kAll;
  Throw(ErrorKind::kInput, "expected norm, all or none, found {}", Quote(value));
}

quant::SmoothOptions ParseAlpha(const std::string& value) {
  if (value == "auto") return {.search = quant::AlphaSearch::kGlobal};
  if (value == "per-layer") return {.search = quant::AlphaSearch::kPerGroup};
  const float alpha = ParseFloat(value);
  if (!(alpha >= 0 && alpha <= 1)) {
    Throw(ErrorKind::kInput, "expected a number from 0 to 1, auto or per-layer, found {}",
          Quote(value));
  }
  return {.alpha = alpha};
}

double ParseShare(std::string value) {
  if (value.ends_with('%')) value.pop_back();
  const float percent = ParseFloat(value);
  if (!(percent >= 0 && percent <= 50)) {
    Throw(ErrorKind::kInput, "expected 0% to 50%, found {}", Quote(value));
  }
  return percent / 100;
}

void AddFlags(CommandLine& line, QuantizeOptions& options) {
  AddModelFlag(line, options.model);
  AddThreadFlags(line, options.model);
  line.Group("Result");
  line.Add({.names = "-o,--output",
            .value = "FOLDER",
            .help = "the int8 model, a new folder; it appears when it is complete"},
           options.output);
  line.Add({.names = "--dry-run", .value = "", .help = "only say what would be done"},
           options.dry_run);
  line.Group("Quantization");
  line.Add({.names = "--scheme",
            .value = "NAME",
            .help = quant::SchemeNames() +
                    ". w8a8 (the default): a scale for each output of a weight and each token; o1: "
                    "one for a weight; o2: and one for all tokens; o3: and that one fixed; naive: "
                    "o2 without smoothing; zeroquant: w8a8 without smoothing, 16 outputs sharing a "
                    "scale; llm-int8: w8a8 without smoothing, inputs of 6 or more in float"},
           [&](const std::string& value) { options.scheme = &quant::FindScheme(value); });
  line.Add({.names = "--keep",
            .value = "PATTERN",
            .help = "layers that stay in float, such as *.down_proj; may be repeated"},
           options.keep);
  line.Group("Smoothing");
  line.Add({.names = "--smooth",
            .value = "WHAT",
            .help = "norm (the default): norms into the layers behind them; all: also v into the "
                    "layer behind attention, up into down; none"},
           [&](const std::string& value) { options.kind = ParseKind(value); });
  line.Add({.names = "--alpha",
            .value = "A",
            .help = "how much of the difficulty goes into the weights, 0 to 1 (0.5); auto: what "
                    "costs least, for the model; per-layer: for each group"},
           [&](const std::string& value) { options.smooth = ParseAlpha(value); });
  line.Add({.names = "--plot", .value = "FILE.svg", .help = "draw the search for alpha"},
           options.plot);
  line.Group("Calibration");
  line.Add({.names = "--calib",
            .value = "FILE",
            .help = "a text like those that the model will read (-: standard input)"},
           options.text_file);
  line.AddInt({.names = "--samples", .value = "N", .help = "pieces of it that are read (512)"},
              options.calibration.samples, 1);
  line.AddInt({.names = "--seq-len", .value = "N", .help = "tokens in each (512)"},
              options.calibration.seq_len, 1);
  line.Add({.names = "--clip-top",
            .value = "P%",
            .help = "with o3: the share of the tokens that may go beyond the fixed scales (0%)"},
           [&](const std::string& value) { options.clip_share = ParseShare(value); });
}

// What can be refused before anything is read.
void Check(const QuantizeOptions& options) {
  if (!options.scheme->smooth && options.smooths()) {
    Throw(ErrorKind::kInput, "--scheme {} is what smoothing is measured against: it has none",
          options.scheme->name);
  }
  if (options.clip_share > 0 && !options.fixed_scales()) {
    Throw(ErrorKind::kInput, "--clip-top is for fixed scales: it needs --scheme o3");
  }
  if (options.plot && (!options.smooths() || options.smooth.search == quant::AlphaSearch::kNone)) {
    Throw(ErrorKind::kInput, "--plot draws the search for alpha: it needs --alpha auto");
  }
  if (options.plot == "-") {
    Throw(ErrorKind::kInput, "--plot: expected a file, since the result goes to standard output");
  }
  if (options.dry_run) return;
  if (options.output.empty()) {
    Throw(ErrorKind::kInput, "a folder for the result is needed: name it with -o FOLDER");
  }
  RefuseExisting(options.output);
  if (options.calibrates() && !options.text_file) {
    Throw(ErrorKind::kInput, "a calibration text is needed: name it with --calib FILE");
  }
}

// The model as it lies there, and what is to be done to it.
struct Model {
  explicit Model(const QuantizeOptions& options) {
    const std::filesystem::path folder = options.model.folder;
    const HfConfig config = HfConfig::Load(folder / "config.json");
    quant::RefuseQuantized(config, options.model.folder);
    spec = DescribeModel(config);
    source = OpenWeights(folder);
    tensors = ResolveTensors(spec, *source);
    plan = quant::PlanQuantization(spec, tensors, options.smooth_kind(), options.keep);
    for (const std::string& name : source->Names()) {
      sizes.before_bytes += std::ssize(source->Find(name)->bytes);
    }
    for (const NewTensor& tensor : quant::PlanTensors(*source, plan, *options.scheme)) {
      sizes.after_bytes += tensor.bytes();
    }
  }

  DecoderSpec spec;
  std::unique_ptr<const WeightSource> source;
  ModelTensors tensors;
  quant::QuantPlan plan;
  QuantizedSizes sizes;
};

quant::CalibrationText ReadCalibrationText(const QuantizeOptions& options,
                                           const DecoderSpec& spec) {
  const auto tokenizer = LoadTokenizer(options.model.folder);
  const auto text = quant::CutCalibrationText(spec, *tokenizer, ReadInputFile(*options.text_file),
                                              options.calibration);
  if (text.short_text) {
    WriteStatus(fmt::format(
        "godwit: warning: {} has text for {} of {} tokens, not for {}: taking all of it\n",
        *options.text_file, Plural(std::ssize(text.pieces), "piece"), options.calibration.seq_len,
        options.calibration.samples));
  }
  return text;
}

void CheckDisk(const std::filesystem::path& folder, int64_t bytes) {
  const auto free = static_cast<int64_t>(std::filesystem::space(folder).available);
  if (free >= bytes) return;
  Throw(ErrorKind::kIo, "{}: the result takes {}, and {} are free there", folder.native(),
        FormatBytes(bytes), FormatBytes(free));
}

struct Calibrated {
  quant::Smoothing smoothing;
  quant::InputMaxima input_maxima;
};

// Steps one and two: what the layers see, and what follows from it.
Calibrated CalibrateAndSmooth(const Exec& exec, const QuantizeOptions& options, const Model& model,
                              const quant::CalibrationText& text) {
  const auto load = [&] {
    ProgressLine progress("loading the model", ProgressUnit::kBytes);
    return LoadDecoder(
        model.spec, *model.source, exec.pool,
        {.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); },
         .warn = [&](const std::string& message) { progress.Say("godwit: warning: " + message); },
         .cancel = exec.cancel});
  };
  const auto decoder = load();
  Calibrated result;
  quant::Calibration calibration;
  {
    ProgressLine progress("calibrating", ProgressUnit::kTokens);
    calibration = quant::Calibrate(exec, *decoder, text.pieces, [&](int64_t done, int64_t total) {
      progress.Update(done, total);
    });
  }
  {
    ProgressLine progress("smoothing", ProgressUnit::kBytes);
    result.smoothing =
        quant::Smooth(exec, model.plan, *options.scheme, calibration, options.smooth,
                      [&](int64_t done, int64_t total) { progress.Update(done, total); });
  }
  if (!options.fixed_scales()) return result;
  result.input_maxima = quant::StaticMaxima(model.plan, calibration, result.smoothing.scalings);
  if (options.clip_share > 0) {
    ProgressLine progress("finding the fixed scales", ProgressUnit::kTokens);
    result.input_maxima = quant::ClippedMaxima(
        exec, *decoder, text.pieces, result.smoothing.scalings, options.clip_share,
        [&](int64_t done, int64_t total) { progress.Update(done, total); });
  }
  return result;
}

// Steps three and four.
void Write(const Exec& exec, const QuantizeOptions& options, const Model& model,
           const Calibrated& calibrated, NewFolder& folder) {
  ProgressLine progress("quantizing and writing", ProgressUnit::kBytes);
  quant::WriteCheckpoint(exec,
                         {.from = options.model.folder,
                          .source = *model.source,
                          .plan = model.plan,
                          .scheme = *options.scheme,
                          .scalings = calibrated.smoothing.scalings,
                          .input_maxima = calibrated.input_maxima},
                         folder.path(),
                         [&](int64_t done, int64_t total) { progress.Update(done, total); });
  folder.Commit();
}

}  // namespace

int Quantize(std::span<const std::string> arguments) {
  const Stopwatch watch;
  QuantizeOptions options;
  CommandLine line("quantize", "-m FOLDER -o FOLDER --calib FILE [flags]",
                   "Makes an int8 model of a model in float, by SmoothQuant: what goes into the "
                   "layers is measured on a text, its outliers are moved into the weights, and "
                   "the weights are quantized. The result is in the format of compressed-tensors, "
                   "which vLLM reads, too, or for llm-int8 in that of bitsandbytes.");
  AddFlags(line, options);
  if (!line.Parse(arguments)) return kExitOk;
  ChooseModel(options.model);
  Check(options);
  const Model model(options);
  if (options.dry_run) {
    WriteOutput(PlanText(model.plan, *options.scheme, model.sizes));
    return kExitOk;
  }
  for (const auto& folder : AbandonedFolders(options.output)) {
    WriteStatus("godwit: warning: " + folder.native() +
                " was left by a run that did not end; it can be removed\n");
  }
  std::optional<quant::CalibrationText> text;
  if (options.calibrates()) text = ReadCalibrationText(options, model.spec);

  WarnAboutThreads(options.model.threads);
  ThreadPool pool(options.model.threads == 0 ? AvailableCores() : options.model.threads);
  Workspace workspace;
  CancelToken cancel;
  const Exec exec{.pool = pool,
                  .kernels = *kernels::SelectIsa(options.model.isa).table,
                  .workspace = workspace,
                  .cancel = &cancel};
  const CancelOnInterrupt on_interrupt(cancel, /*presses_to_exit=*/2);
  NewFolder folder(options.output);
  CheckDisk(folder.path(), model.sizes.after_bytes);
  Calibrated calibrated;
  if (text) calibrated = CalibrateAndSmooth(exec, options, model, *text);
  if (options.plot) WriteFile(*options.plot, CurveChart(calibrated.smoothing));
  Write(exec, options, model, calibrated, folder);

  const quant::Smoothing& smoothing = calibrated.smoothing;
  if (!smoothing.curve.empty()) WriteOutput(CurveText(smoothing) + "\n");
  WriteOutput(fmt::format("{:<12}{}: {}\n{:<12}{}\n{}{:<12}{:.1f} s\n", "scheme",
                          options.scheme->name, options.scheme->description, "alpha",
                          DescribeAlphas(smoothing), DescribeSizes(model.sizes), "time",
                          watch.ms() / 1000));
  return kExitOk;
}

}  // namespace godwit::cli
