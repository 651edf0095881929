// godwit inspect --activations: the inputs of linear layers, before and after smoothing.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/options/inspect_options.h"
#include "console/exit_code.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/table.h"
#include "lab/commands.h"
#include "lab/model_run.h"
#include "lab/reports/activations_report.h"
#include "lab/reports/quantize_report.h"
#include "quant/look_at_layers.h"

namespace godwit::lab {

int InspectActivations(std::span<const std::string> arguments) {
  cli::InspectOptions options = cli::ParseInspect(arguments);
  cli::ChooseModel(options.model);
  const ModelFolder model(options.model.folder);
  const auto alpha = SmoothOptionsOf(options.smoothing).value_or(quant::SmoothOptions());
  const auto kind = SmoothKindOf(options.smoothing).value_or(quant::SmoothKind::kNorm);
  const auto layers = quant::PlanLook(model, *options.layers, kind, alpha);
  cli::WarnAboutSpec(model.spec());
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
    console::WriteJson(object);
  } else {
    const std::string read =
        fmt::format("{}, {}", console::Plural(std::ssize(text.pieces), "piece"),
                    console::Plural(text.tokens, "token"));
    console::WriteOutput(
        console::Facts().Add("text", read).Add("alpha", DescribeAlphas(seen.smoothing)).Take() +
        MaximaText(seen.linears));
  }
  return console::kExitOk;
}

}  // namespace godwit::lab
