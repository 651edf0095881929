// Flags, as they were given, of every verb that calibrates a model on a text and smooths it. They
// are checked here and interpreted by the code that smooths (model_run.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "console/options/command_line.h"

namespace godwit::cli {

struct SmoothingFlags {
  std::optional<std::string> smooth;  // norm, all or none; nullopt: the verb's default
  std::optional<std::string> alpha;   // auto, per-layer or a number from 0 to 1
};

struct CalibrationFlags {
  std::optional<std::string> file;
  bool lossy = false;     // as in TextInput
  int64_t samples = 512;  // pieces of the text
  int64_t seq_len = 512;  // tokens of a piece
};

void AddSmoothingFlags(console::CommandLine& line, SmoothingFlags& flags);      // --smooth, --alpha
void AddCalibrationFlags(console::CommandLine& line, CalibrationFlags& flags);  // --calib, ...

// Throws Error(kInput) without --calib.
void RequireCalibrationText(const CalibrationFlags& flags);

}  // namespace godwit::cli
