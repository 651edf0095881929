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
            .help = "where smoothing applies. norm: between a norm and the layers after it; all: "
                    "also between v and the layer after attention, and between up and down; none",
            .fallback = "norm",
            .choices = {"norm", "all", "none"}},
           [&](const std::string& value) { flags.smooth = CheckedSmooth(value); });
  line.Add({.names = "--alpha",
            .value = "A",
            .help = "the share of the activations' range that moves into the weights, 0 to 1; "
                    "auto: the value with the least error for the model; per-layer: one such value "
                    "for each group of layers",
            .fallback = "0.5",
            .choices = {"auto", "per-layer"}},
           [&](const std::string& value) { flags.alpha = CheckedAlpha(value); });
}

void AddCalibrationFlags(console::CommandLine& line, CalibrationFlags& flags) {
  line.Group("Calibration");
  line.Add({.names = "--calib",
            .value = "FILE",
            .help = "the calibration text, which should resemble the texts that the model will "
                    "read (-: standard input)"},
           flags.file);
  console::AddLossyFlag(line, flags.lossy);
  line.AddInt({.names = "--samples",
               .value = "N",
               .help = "the number of pieces of the calibration text",
               .is_verbs_own = true},
              flags.samples, 1);
  line.AddInt({.names = "--seq-len", .value = "N", .help = "the tokens of each piece"},
              flags.seq_len, 1);
}

void RequireCalibrationText(const CalibrationFlags& flags) {
  if (flags.file) return;
  Throw(ErrorKind::kInput, "a calibration text is needed: name it with --calib FILE");
}

}  // namespace godwit::cli
