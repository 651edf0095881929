// godwit quantize: calibrate, smooth, quantize, write.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/name_list.h"
#include "base/new_folder.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "cli/options/model_options.h"
#include "cli/options/smoothing_options.h"
#include "console/exit_code.h"
#include "console/options/parse_value.h"
#include "console/terminal/clean_up.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/result_files.h"
#include "console/terminal/table.h"
#include "lab/commands.h"
#include "lab/model_run.h"
#include "lab/quantize_gguf.h"
#include "lab/reports/quantize_report.h"
#include "quant/quantize_model.h"

namespace godwit::lab {
namespace {

struct QuantizeOptions {
  cli::ModelOptions model;
  std::string output;
  quant::QuantizeOptions quantize;
  cli::SmoothingFlags smoothing;
  cli::CalibrationFlags calibration;
  std::optional<int64_t> group;  // --group-size
  std::optional<bool> rounding;  // --rounding; whether the text decides
  bool dry_run = false;
  bool json = false;
  std::string to;                                                       // --to; empty: a folder
  const quant::GgufScheme* gguf_type = &quant::FindGgufScheme("q8_0");  // --type
};

double ParseShare(std::string value) {
  if (value.ends_with('%')) value.pop_back();
  const float percent = console::ParseFloat(value);
  if (!(percent >= 0 && percent <= 50)) {
    Throw(ErrorKind::kInput, "expected 0% to 50%, found {}", Quote(value));
  }
  return percent / 100;
}

int64_t ParseGroup(const std::string& value) {
  const int64_t group = console::ParseInt(value, 1, 128);
  if (std::ranges::find(quant::kGroups, group) == std::end(quant::kGroups)) {
    Throw(ErrorKind::kInput, "expected 32, 64 or 128, found {}", Quote(value));
  }
  return group;
}

bool ParseRounding(const std::string& value) {
  if (value == "gptq") return true;
  if (value == "nearest") return false;
  Throw(ErrorKind::kInput, "expected gptq or nearest, found {}", Quote(value));
}

// Flags for GGUF. All other flags are for a folder.
void AddGgufFlags(console::CommandLine& line, QuantizeOptions& options) {
  line.Group("GGUF");
  line.Add(
      {.names = "--to",
       .value = "FORMAT",
       .help =
           "gguf: write a GGUF file, which llama.cpp also reads, without smoothing and calibration",
       .choices = {"gguf"}},
      [&](const std::string& value) {
        if (value != "gguf") Throw(ErrorKind::kInput, "expected gguf, found {}", Quote(value));
        options.to = value;
      });
  line.Add({.names = "--type",
            .value = "NAME",
            .help = "with --to gguf: q8_0, q4_k (embedding and output head in Q8_0), f16, bf16 or "
                    "f32. Norms, biases and routers are floats",
            .fallback = "q8_0",
            .choices = Names(quant::kGgufSchemes, &quant::GgufScheme::name)},
           [&](const std::string& value) { options.gguf_type = &quant::FindGgufScheme(value); });
  line.Needs("--type", {"--to"});
}

void AddFlags(console::CommandLine& line, QuantizeOptions& options) {
  cli::AddModelFlag(line, options.model);
  cli::AddThreadFlags(line, options.model);
  line.Group("Result");
  line.Add({.names = "-o,--output",
            .value = "FOLDER",
            .help = "the new folder of the quantized model, or with --to gguf the new file; it "
                    "appears when it is complete"},
           options.output);
  line.Add({.names = "--dry-run", .value = "", .help = "print the plan and write nothing"},
           options.dry_run);
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Exclusive({"--dry-run", "--json"});
  line.RefusePlot();
  AddGgufFlags(line, options);
  line.Group("Quantization");
  line.Add({.names = "--scheme",
            .value = "NAME",
            .help = quant::SchemeNames() +
                    ". w8a8: a scale for each output of a weight and for each token; o1: a scale "
                    "for each weight and for each token; o2: a scale for each weight and one for "
                    "all tokens; o3: o2 with a fixed scale of tokens; naive: o2 without smoothing; "
                    "zeroquant: w8a8 without smoothing, with a scale for 16 outputs; llm-int8: "
                    "w8a8 without smoothing, with inputs of 6 or more in float; "
                    "outlier-suppression: o3, with norms without gains for smoothing, and as many "
                    "clipped tokens as serve each layer best; w4a8: 4-bit "
                    "weights with a scale for each group of inputs; w4a16: w4a8 for programs that "
                    "keep activations in float; w4a16-asym: w4a16 with zero points",
            .fallback = std::string(options.quantize.scheme.name),
            .choices = Names(quant::kSchemes, &quant::Scheme::name)},
           [&](const std::string& value) { options.quantize.scheme = quant::FindScheme(value); });
  line.Add({.names = "--group-size",
            .value = "N",
            .help = "with 4 bits: the inputs that share a scale, 32, 64 or 128. Fewer are more "
                    "accurate and take more memory",
            .fallback = std::to_string(quant::kDefaultGroup)},
           [&](const std::string& value) { options.group = ParseGroup(value); });
  line.Add({.names = "--rounding",
            .value = "HOW",
            .help = "with 4 bits: gptq, where later weights of an output correct the rounding "
                    "errors of earlier ones on the calibration text, or nearest",
            .fallback = "gptq",
            .choices = {"gptq", "nearest"}},
           [&](const std::string& value) { options.rounding = ParseRounding(value); });
  line.Add({.names = "--int8",
            .value = "PATTERN",
            .help = "with 4 bits: layers that get 8 bits, such as *.down_proj; may be repeated"},
           options.quantize.int8);
  line.Add({.names = "--keep",
            .value = "PATTERN",
            .help = "layers that stay in float, such as *.down_proj; may be repeated"},
           options.quantize.keep);
  cli::AddSmoothingFlags(line, options.smoothing);
  cli::AddCalibrationFlags(line, options.calibration);
  line.Add(
      {.names = "--clip-top",
       .value = "P%",
       .help =
           "with o3 or outlier-suppression: the share of tokens that may exceed the fixed scales",
       .fallback = "0%"},
      [&](const std::string& value) { options.quantize.clip_share = ParseShare(value); });
  for (const char* other :
       {"--scheme", "--group-size", "--rounding", "--int8", "--keep", "--smooth", "--alpha",
        "--calib", "--samples", "--seq-len", "--clip-top"}) {
    line.Exclusive({"--to", other});
  }
}

// Refuses what can be refused before anything is read.
void CheckQuantize(const QuantizeOptions& options) {
  const bool eight = !options.quantize.int8.empty();
  if ((options.group || options.rounding || eight) && !options.quantize.scheme.has_groups()) {
    Throw(ErrorKind::kInput, "{} is for weights of 4 bits: it needs --scheme w4a8 or w4a16",
          options.group      ? "--group-size"
          : options.rounding ? "--rounding"
                             : "--int8");
  }
  if (!options.quantize.scheme.smooth && options.quantize.smooths()) {
    Throw(ErrorKind::kInput, "--scheme {} is a baseline without smoothing: leave --smooth out",
          options.quantize.scheme.name);
  }
  if (options.smoothing.alpha && options.quantize.scheme.suppresses_outliers) {
    Throw(ErrorKind::kInput, "--alpha is for smoothing, and --scheme {} moves the gains of norms",
          options.quantize.scheme.name);
  }
  if (options.smoothing.alpha && !options.quantize.smooths()) {
    Throw(ErrorKind::kInput, "--alpha needs smoothing, and {} has none",
          options.quantize.scheme.smooth
              ? "--smooth none"
              : fmt::format("--scheme {}", options.quantize.scheme.name));
  }
  if (options.quantize.clip_share > 0 && !options.quantize.has_fixed_scales()) {
    Throw(ErrorKind::kInput, "--clip-top is for fixed scales: it needs --scheme o3");
  }
  if (options.dry_run) return;
  if (options.output.empty()) {
    Throw(ErrorKind::kInput, "a folder for the result is needed: name it with -o FOLDER");
  }
  RefuseExisting(options.output);
  console::CheckResultFiles({{"-o", options.output}},
                            {{"-m", options.model.folder}, {"--calib", options.calibration.file}});
  if (options.quantize.calibrates()) cli::RequireCalibrationText(options.calibration);
}

}  // namespace

int Quantize(std::span<const std::string> arguments) {
  const Stopwatch watch;
  QuantizeOptions options;
  console::CommandLine line(
      "quantize", "[-m MODEL] -o FOLDER (--calib FILE | --to gguf) [flags]",
      "Quantizes a float model to 8 or 4 bits. --to gguf rounds the weights. Otherwise "
      "SmoothQuant, or AWQ and GPTQ: the inputs of layers are measured on a text, their outliers "
      "move into the weights, and the weights are quantized. The result is in the format of "
      "compressed-tensors, which vLLM also reads, or for llm-int8 in that of bitsandbytes. From a "
      "GGUF file, the numbers stored there are taken.");
  AddFlags(line, options);
  line.Parse(arguments);
  options.quantize.smooth = SmoothKindOf(options.smoothing);
  options.quantize.alpha = SmoothOptionsOf(options.smoothing);
  options.quantize.compensates = options.rounding.value_or(true);
  if (!options.to.empty()) {
    return QuantizeToGguf(options.model, {.file = options.output,
                                          .scheme = options.gguf_type,
                                          .dry_run = options.dry_run,
                                          .json = options.json});
  }
  cli::ChooseModel(options.model);
  const ModelFolder model(options.model.folder);
  CheckQuantize(options);
  if (options.group) options.quantize.scheme.group = *options.group;
  const quant::ModelPlan plan = quant::PlanModel(model, options.quantize);
  cli::WarnAboutSpec(model.spec());
  if (options.dry_run) {
    console::WriteOutput(PlanText(plan, options.quantize.scheme));
    return console::kExitOk;
  }
  for (const auto& folder : AbandonedFolders(options.output)) {
    console::WriteNotice("godwit: warning: " + QuoteUnlessPlain(folder.native()) +
                         " was left by an interrupted run; it can be removed\n");
  }
  quant::CalibrationText text;
  if (options.quantize.calibrates()) text = ReadCalibrationText(model, options.calibration);
  const quant::Smoothing smoothing = [&] {
    const CalibrationRun run(options.model);
    // The guard stands before the folder exists: a signal may come at once.
    const console::RemovedOnSignal removed(NewFolder::TemporaryPath(options.output));
    return quant::QuantizeModel(run.exec(), model, plan, options.quantize, text.pieces,
                                options.output, run.hooks());
  }();
  if (options.json) {
    nlohmann::ordered_json json{{"model", options.model.folder},
                                {"output", options.output},
                                {"scheme", options.quantize.scheme.name},
                                {"text", nullptr},
                                {"tokens", nullptr}};
    if (options.quantize.scheme.has_groups()) {
      json["group_size"] = options.quantize.scheme.group;
      json["rounding"] = options.quantize.compensates ? "gptq" : "nearest";
    }
    if (options.quantize.calibrates()) {
      json["text"] = *options.calibration.file;
      json["tokens"] = text.tokens;
    }
    PutSmoothing(json, smoothing);
    json["before_bytes"] = plan.before_bytes;
    json["after_bytes"] = plan.after_bytes;
    json["elapsed_ms"] = watch.ms();
    console::WriteJson(json);
    return console::kExitOk;
  }
  if (!smoothing.curve.empty()) console::WriteOutput(CurveText(smoothing) + "\n");
  const quant::Scheme& scheme = options.quantize.scheme;
  console::WriteOutput(console::Facts()
                           .Add("scheme", fmt::format("{}: {}", scheme.name, scheme.description))
                           .Add("alpha", DescribeAlphas(smoothing))
                           .Add("weights", DescribeSizes(plan))
                           .Add("time", fmt::format("{:.1f} s", watch.ms() / 1000))
                           .Take());
  return console::kExitOk;
}

}  // namespace godwit::lab
