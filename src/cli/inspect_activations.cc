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

void InspectActivations(InspectOptions options) {
  ChooseModel(options.model);
  const ModelFolder model(options.model.folder);
  const auto alpha = SmoothOptionsOf(options.smoothing).value_or(quant::SmoothOptions());
  const auto kind = SmoothKindOf(options.smoothing).value_or(quant::SmoothKind::kNorm);
  const auto layers = quant::PlanLook(model, *options.layers, kind, alpha);
  WarnAboutSpec(model.spec());
  const quant::CalibrationText text = ReadCalibrationText(model, options.calibration);
  const quant::LayersSeen seen = [&] {
    const CalibrationRun run(options.model);
    return quant::LookAtLayers(run.exec(), model, layers, alpha, text.pieces, run.hooks());
  }();
  if (options.json) {
    nlohmann::ordered_json object = {{"folder", options.model.folder},
                                     {"text", *options.calibration.file},
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
