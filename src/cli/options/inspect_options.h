// Flags of `inspect`, which both programs read: --activations is a verb of godwit-lab.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options/model_options.h"
#include "cli/options/smoothing_options.h"
#include "godwit/engine.h"

namespace godwit::cli {

struct InspectOptions {
  ModelOptions model;  // before ChooseModel
  bool tensors = false;
  bool json = false;

  // --activations: a decoder layer's number, or a name with *.
  std::optional<std::string> layers;
  SmoothingFlags smoothing;
  CalibrationFlags calibration{.samples = 64};  // enough to look at

  // --kv, and the flags that belong to it.
  std::vector<std::string> kvs;
  SessionOptions session;  // for its kv_type
  std::vector<int64_t> contexts;
  std::optional<std::string> shape;
};

// Throws as CommandLine::Parse does, and for flags of --activations or --kv without it.
InspectOptions ParseInspect(std::span<const std::string> arguments);

}  // namespace godwit::cli
