// godwit quantize: calibrate, smooth, quantize, write.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/name_list.h"
#include "base/new_folder.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "cli/calibration_run.h"
#include "cli/exit_code.h"
#include "cli/options/model_options.h"
#include "cli/options/parse_value.h"
#include "cli/options/smoothing_options.h"
#include "cli/quantize_report.h"
#include "cli/terminal/clean_up.h"
#include "cli/terminal/format.h"
#include "cli/terminal/json_output.h"
#include "cli/terminal/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/result_files.h"
#include "cli/verbs.h"
#include "quant/static_scales.h"
#include "quant/write_checkpoint.h"

namespace godwit::cli {
namespace {

struct QuantizeOptions {
  ModelOptions model;
  std::string output;
  const quant::Scheme* scheme = &quant::kDefaultScheme;
  std::vector<std::string> keep;
  SmoothingOptions smoothing;
  CalibrationInput calibration;
  double clip_share = 0;
  bool dry_run = false;
  bool json = false;

  quant::SmoothKind smooth_kind() const {
    return smoothing.kind.value_or(scheme->smooth ? quant::SmoothKind::kNorm
                                                  : quant::SmoothKind::kNone);
  }
  bool smooths() const { return smooth_kind() != quant::SmoothKind::kNone; }
  bool searches() const { return smooths() && smoothing.how().search != quant::AlphaSearch::kNone; }
  bool fixed_scales() const { return scheme->input == quant::InputScale::kStatic; }
  bool calibrates() const { return smooths() || fixed_scales(); }
};

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
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Exclusive({"--dry-run", "--json"});
  line.RefusePlot();
  line.Group("Quantization");
  line.Add({.names = "--scheme",
            .value = "NAME",
            .help = quant::SchemeNames() +
                    ". w8a8: a scale for each output of a weight and each token; o1: "
                    "one for a weight; o2: and one for all tokens; o3: and that one fixed; naive: "
                    "o2 without smoothing; zeroquant: w8a8 without smoothing, 16 outputs sharing a "
                    "scale; llm-int8: w8a8 without smoothing, inputs of 6 or more in float",
            .fallback = std::string(options.scheme->name),
            .choices = Names(quant::kSchemes, &quant::Scheme::name)},
           [&](const std::string& value) { options.scheme = &quant::FindScheme(value); });
  line.Add({.names = "--keep",
            .value = "PATTERN",
            .help = "layers that stay in float, such as *.down_proj; may be repeated"},
           options.keep);
  AddSmoothingFlags(line, options.smoothing);
  AddCalibrationFlags(line, options.calibration);
  line.Add({.names = "--clip-top",
            .value = "P%",
            .help = "with o3: the share of the tokens that may go beyond the fixed scales",
            .fallback = "0%"},
           [&](const std::string& value) { options.clip_share = ParseShare(value); });
}

// What can be refused before anything is read.
void Check(const QuantizeOptions& options) {
  if (!options.scheme->smooth && options.smooths()) {
    Throw(ErrorKind::kInput, "--scheme {} is what smoothing is measured against: it has none",
          options.scheme->name);
  }
  if (options.smoothing.alpha && !options.smooths()) {
    Throw(ErrorKind::kInput, "--alpha is for smoothing, and there is none with {}",
          options.scheme->smooth ? "--smooth none"
                                 : fmt::format("--scheme {}", options.scheme->name));
  }
  if (options.clip_share > 0 && !options.fixed_scales()) {
    Throw(ErrorKind::kInput, "--clip-top is for fixed scales: it needs --scheme o3");
  }
  if (options.dry_run) return;
  if (options.output.empty()) {
    Throw(ErrorKind::kInput, "a folder for the result is needed: name it with -o FOLDER");
  }
  RefuseExisting(options.output);
  CheckResultFiles({{"-o", options.output}},
                   {{"-m", options.model.folder}, {"--calib", options.calibration.file}});
  if (options.calibrates()) RequireText(options.calibration);
}

// The model, and what is to be done to it.
struct Model {
  explicit Model(const QuantizeOptions& options)
      : folder(OpenFloatModel(options.model.folder)),
        plan(quant::PlanQuantization(folder.spec(), folder.tensors(), options.smooth_kind(),
                                     options.keep)) {
    const WeightSource& source = folder.weights();
    for (const std::string& name : source.Names()) {
      sizes.before_bytes += std::ssize(source.Find(name)->bytes);
    }
    for (const NewTensor& tensor : quant::PlanTensors(source, plan, *options.scheme)) {
      sizes.after_bytes += tensor.bytes();
    }
  }

  ModelFolder folder;
  quant::QuantPlan plan;
  QuantizedSizes sizes;
};

void CheckDisk(const std::filesystem::path& folder, int64_t bytes) {
  const auto free = static_cast<int64_t>(std::filesystem::space(folder).available);
  if (free >= bytes) return;
  Throw(ErrorKind::kIo, "{}: the result takes {}, and {} are free there",
        QuoteUnlessPlain(folder.native()), FormatBytes(bytes), FormatBytes(free));
}

struct Calibrated {
  quant::Smoothing smoothing;
  quant::InputMaxima input_maxima;
};

// Steps one and two: what the layers see, and what follows from it.
Calibrated CalibrateAndSmooth(const Exec& exec, const QuantizeOptions& options, const Model& model,
                              const quant::CalibrationText& text) {
  const auto decoder = LoadLayers(exec, model.folder, model.folder.spec().layers);
  const auto calibration = RunCalibration(exec, *decoder, text, {.samples = options.searches()});
  Calibrated result;
  result.smoothing =
      RunSmoothing(exec, model.plan, *options.scheme, calibration, options.smoothing);
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
                         {.from = model.folder.path(),
                          .source = model.folder.weights(),
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
  CommandLine line("quantize", "[-m MODEL] -o FOLDER --calib FILE [flags]",
                   "Makes an int8 model of a model in float, by SmoothQuant: what goes into the "
                   "layers is measured on a text, its outliers are moved into the weights, and "
                   "the weights are quantized. The result is in the format of compressed-tensors, "
                   "which vLLM reads, too, or for llm-int8 in that of bitsandbytes.");
  AddFlags(line, options);
  line.Parse(arguments);
  ChooseModel(options.model);
  Check(options);
  const Model model(options);
  if (options.dry_run) {
    WriteOutput(PlanText(model.plan, *options.scheme, model.sizes));
    return kExitOk;
  }
  for (const auto& folder : AbandonedFolders(options.output)) {
    WriteNotice("godwit: warning: " + QuoteUnlessPlain(folder.native()) +
                " was left by a run that did not end; it can be removed\n");
  }
  std::optional<quant::CalibrationText> text;
  if (options.calibrates()) text = ReadCalibrationText(model.folder, options.calibration);

  const Computation computation(options.model);
  const Exec& exec = computation.exec();
  // Before it is there: a signal may come at once.
  const RemovedOnSignal removed(NewFolder::TemporaryPath(options.output));
  NewFolder folder(options.output);
  CheckDisk(folder.path().parent_path(), model.sizes.after_bytes);
  Calibrated calibrated;
  if (text) calibrated = CalibrateAndSmooth(exec, options, model, *text);
  Write(exec, options, model, calibrated, folder);

  const quant::Smoothing& smoothing = calibrated.smoothing;
  if (options.json) {
    nlohmann::ordered_json json{{"model", options.model.folder},
                                {"output", options.output},
                                {"scheme", options.scheme->name},
                                {"text", nullptr},
                                {"tokens", nullptr}};
    if (text) {
      json["text"] = *options.calibration.file;
      json["tokens"] = text->tokens;
    }
    PutSmoothing(json, smoothing);
    json["before_bytes"] = model.sizes.before_bytes;
    json["after_bytes"] = model.sizes.after_bytes;
    json["elapsed_ms"] = watch.ms();
    WriteJson(json);
    return kExitOk;
  }
  if (!smoothing.curve.empty()) WriteOutput(CurveText(smoothing) + "\n");
  WriteOutput(fmt::format("{:<12}{}: {}\n{:<12}{}\n{}{:<12}{:.1f} s\n", "scheme",
                          options.scheme->name, options.scheme->description, "alpha",
                          DescribeAlphas(smoothing), DescribeSizes(model.sizes), "time",
                          watch.ms() / 1000));
  return kExitOk;
}

}  // namespace godwit::cli
