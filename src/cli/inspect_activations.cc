#include "cli/inspect_activations.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/calibration_run.h"
#include "cli/reports/activations_report.h"
#include "cli/reports/quantize_report.h"
#include "cli/terminal/format.h"
#include "cli/terminal/json_output.h"
#include "cli/terminal/output.h"
#include "cli/terminal/table.h"
#include "quant/look_at_layers.h"

namespace godwit::cli {

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

void InspectActivations(const ModelOptions& options, const ActivationsOptions& activations,
                        bool json) {
  const ModelFolder model(options.folder);
  const quant::SmoothOptions alpha = activations.smoothing.how();
  const auto layers =
      quant::PlanLook(model, *activations.layers,
                      activations.smoothing.kind.value_or(quant::SmoothKind::kNorm), alpha);
  WarnAboutSpec(model.spec());
  const quant::CalibrationText text = ReadCalibrationText(model, activations.calibration);
  const quant::LayersSeen seen = [&] {
    const CalibrationRun run(options);
    return quant::LookAtLayers(run.exec(), model, layers, alpha, text.pieces, run.hooks());
  }();
  if (json) {
    nlohmann::ordered_json object = {{"folder", options.folder},
                                     {"text", *activations.calibration.file},
                                     {"tokens", text.tokens},
                                     {"alphas", seen.smoothing.alphas}};
    object["linears"] = MaximaJson(seen.linears);
    WriteJson(object);
  } else {
    const std::string read = fmt::format("{}, {}", Plural(std::ssize(text.pieces), "piece"),
                                         Plural(text.tokens, "token"));
    WriteOutput(Facts().Add("text", read).Add("alpha", DescribeAlphas(seen.smoothing)).Take() +
                MaximaText(seen.linears));
  }
}

}  // namespace godwit::cli
