#include "cli/options/smoothing_options.h"

#include "base/error.h"
#include "base/quote.h"
#include "cli/options/parse_value.h"
#include "cli/options/text_input.h"

namespace godwit::cli {
namespace {

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

}  // namespace

void AddSmoothingFlags(CommandLine& line, SmoothingOptions& options) {
  line.Group("Smoothing");
  line.Add({.names = "--smooth",
            .value = "WHAT",
            .help = "norm: norms into the layers behind them; all: also v into the layer behind "
                    "attention, up into down; none",
            .fallback = "norm",
            .choices = {"norm", "all", "none"}},
           [&](const std::string& value) { options.kind = ParseKind(value); });
  line.Add({.names = "--alpha",
            .value = "A",
            .help = "how much of the difficulty goes into the weights, 0 to 1; auto: what costs "
                    "least, for the model; per-layer: for each group",
            .fallback = fmt::format("{}", options.how().alpha),
            .choices = {"auto", "per-layer"}},
           [&](const std::string& value) { options.alpha = ParseAlpha(value); });
}

void AddCalibrationFlags(CommandLine& line, CalibrationInput& options) {
  line.Group("Calibration");
  line.Add({.names = "--calib",
            .value = "FILE",
            .help = "a text like those that the model will read (-: standard input)"},
           options.file);
  AddLossyFlag(line, options.lossy);
  line.AddInt({.names = "--samples",
               .value = "N",
               .help = "pieces of it that are read",
               .is_verbs_own = true},
              options.pieces.samples, 1);
  line.AddInt({.names = "--seq-len", .value = "N", .help = "tokens in each"},
              options.pieces.seq_len, 1);
}

void RequireText(const CalibrationInput& options) {
  if (options.file) return;
  Throw(ErrorKind::kInput, "a calibration text is needed: name it with --calib FILE");
}

}  // namespace godwit::cli
