#include "cli/options/smoothing_options.h"

#include "base/error.h"
#include "base/quote.h"
#include "console/options/parse_value.h"
#include "console/options/text_input.h"

namespace godwit::cli {
namespace {

std::string CheckedSmooth(const std::string& value) {
  if (value == "none" || value == "norm" || value == "all") return value;
  Throw(ErrorKind::kInput, "expected norm, all or none, found {}", Quote(value));
}

std::string CheckedAlpha(const std::string& value) {
  if (value == "auto" || value == "per-layer") return value;
  const float alpha = console::ParseFloat(value);
  if (alpha >= 0 && alpha <= 1) return value;
  Throw(ErrorKind::kInput, "expected a number from 0 to 1, auto or per-layer, found {}",
        Quote(value));
}

}  // namespace

void AddSmoothingFlags(console::CommandLine& line, SmoothingFlags& flags) {
  line.Group("Smoothing");
  line.Add({.names = "--smooth",
            .value = "WHAT",
            .help = "norm: norms into the layers behind them; all: also v into the layer behind "
                    "attention, up into down; none",
            .fallback = "norm",
            .choices = {"norm", "all", "none"}},
           [&](const std::string& value) { flags.smooth = CheckedSmooth(value); });
  line.Add({.names = "--alpha",
            .value = "A",
            .help = "how much of the difficulty goes into the weights, 0 to 1; auto: what costs "
                    "least, for the model; per-layer: for each group",
            .fallback = "0.5",
            .choices = {"auto", "per-layer"}},
           [&](const std::string& value) { flags.alpha = CheckedAlpha(value); });
}

void AddCalibrationFlags(console::CommandLine& line, CalibrationFlags& flags) {
  line.Group("Calibration");
  line.Add({.names = "--calib",
            .value = "FILE",
            .help = "a text like those that the model will read (-: standard input)"},
           flags.file);
  console::AddLossyFlag(line, flags.lossy);
  line.AddInt({.names = "--samples",
               .value = "N",
               .help = "pieces of it that are read",
               .is_verbs_own = true},
              flags.samples, 1);
  line.AddInt({.names = "--seq-len", .value = "N", .help = "tokens in each"}, flags.seq_len, 1);
}

void RequireCalibrationText(const CalibrationFlags& flags) {
  if (flags.file) return;
  Throw(ErrorKind::kInput, "a calibration text is needed: name it with --calib FILE");
}

}  // namespace godwit::cli
