#include "cli/inspect_activations.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/activations_report.h"
#include "cli/calibration_run.h"
#include "cli/quantize_report.h"
#include "cli/terminal/format.h"
#include "cli/terminal/json_output.h"
#include "cli/terminal/output.h"
#include "quant/channel_maxima.h"
#include "quant/chosen_linears.h"
#include "quant/linears.h"

namespace godwit::cli {
namespace {

LinearMaxima Measure(const Exec& exec, const LinearTensors& linear,
                     const quant::Calibration& calibration, const quant::Scalings& scalings) {
  const auto measured = [&](const quant::Scalings& with) -> ChannelMaxima {
    return {.inputs = quant::LargestInputs(linear, calibration, with),
            .weights = quant::LargestWeights(exec, linear, with)};
  };
  LinearMaxima maxima{.name = quant::FullName(linear), .before = measured({})};
  const bool smoothed = std::ranges::any_of(
      linear.parts, [&](const TensorInfo* part) { return scalings.contains(part->name); });
  if (smoothed) maxima.after = measured(scalings);
  return maxima;
}

struct Seen {
  quant::CalibrationText text;
  quant::Smoothing smoothing;
  std::vector<LinearMaxima> linears;
};

Seen Look(const ModelOptions& options, const ActivationsOptions& activations) {
  const ModelFolder model = OpenFloatModel(options.folder);
  const auto chosen = quant::ChooseLinears(model.tensors(), *activations.layers);
  const auto kind = activations.smoothing.kind.value_or(quant::SmoothKind::kNorm);
  const quant::AlphaSearch search = activations.smoothing.how().search;
  auto plan = quant::PlanQuantization(model.spec(), model.tensors(), kind, /*keep=*/{});
  quant::CalibrationScope scope{.samples = search != quant::AlphaSearch::kNone};
  int64_t layers = model.spec().layers;
  // One alpha for the model takes all of it, anything else only what is looked at.
  if (search != quant::AlphaSearch::kGlobal) {
    plan.smooth.groups = quant::GroupsOf(chosen, std::move(plan.smooth.groups));
    scope.linears = chosen.neighbours;
    layers = chosen.layers;
  }
  Seen seen{.text = ReadCalibrationText(model, activations.calibration)};

  const Computation computation(options);
  const Exec& exec = computation.exec();
  const auto decoder = LoadLayers(exec, model, layers);
  const auto calibration = RunCalibration(exec, *decoder, seen.text, scope);
  // Nothing is quantized, but a search for alpha asks what that would cost.
  seen.smoothing =
      RunSmoothing(exec, plan, quant::kDefaultScheme, calibration, activations.smoothing);
  for (const LinearTensors* linear : chosen.linears) {
    seen.linears.push_back(Measure(exec, *linear, calibration, seen.smoothing.scalings));
  }
  return seen;
}

}  // namespace

void AddActivationsFlags(CommandLine& line, ActivationsOptions& options) {
  line.Group("Activations");
  line.Add({.names = "--activations",
            .value = "LAYER",
            .help = "look at layers instead: the largest activation and weight of every channel, "
                    "before and after smoothing. A decoder layer's number, or linear layers by "
                    "name (*.down_proj)"},
           options.layers);
  line.RefusePlot();
  AddSmoothingFlags(line, options.smoothing);
  AddCalibrationFlags(line, options.calibration);
  // The weights are looked at as they are stored.
  for (const char* other : {"--tensors", "--weights", "--numa"}) {
    line.Exclusive({"--activations", other});
  }
}

void CheckActivations(const ActivationsOptions& options) {
  if (options.layers) return RequireText(options.calibration);
  if (options.calibration.file) {
    Throw(ErrorKind::kInput, "--calib is for a look at layers: it needs --activations");
  }
}

void InspectActivations(const ModelOptions& model, const ActivationsOptions& activations,
                        bool json) {
  const Seen seen = Look(model, activations);
  if (json) {
    nlohmann::ordered_json object = {{"folder", model.folder},
                                     {"text", *activations.calibration.file},
                                     {"tokens", seen.text.tokens},
                                     {"alphas", seen.smoothing.alphas}};
    object["linears"] = MaximaJson(seen.linears);
    WriteJson(object);
  } else {
    WriteOutput(fmt::format("calibration {}, {}\nalpha       {}\n",
                            Plural(std::ssize(seen.text.pieces), "piece"),
                            Plural(seen.text.tokens, "token"), DescribeAlphas(seen.smoothing)) +
                MaximaText(seen.linears));
  }
}

}  // namespace godwit::cli
