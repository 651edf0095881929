// The flags of every verb that calibrates a model on a text and smooths it.
#pragma once

#include <optional>
#include <string>

#include "cli/options/command_line.h"
#include "quant/calibration_text.h"
#include "quant/smooth.h"

namespace godwit::cli {

struct SmoothingOptions {
  std::optional<quant::SmoothKind> kind;  // none: as the verb has it
  std::optional<quant::SmoothOptions> alpha;

  quant::SmoothOptions how() const { return alpha.value_or(quant::SmoothOptions()); }
};

struct CalibrationInput {
  std::optional<std::string> file;
  bool lossy = false;                // as TextInput's
  quant::CalibrationOptions pieces;  // preset: the defaults that the help names
};

void AddSmoothingFlags(CommandLine& line, SmoothingOptions& options);    // --smooth, --alpha
void AddCalibrationFlags(CommandLine& line, CalibrationInput& options);  // --calib, ...

// Throws Error(kInput) without --calib.
void RequireText(const CalibrationInput& options);

}  // namespace godwit::cli
