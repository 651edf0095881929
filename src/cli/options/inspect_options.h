// The flags of `inspect`, whose --activations is a verb of godwit-lab's: both programs read them.
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
  ModelOptions model;  // not yet chosen
  bool tensors = false;
  bool json = false;

  // --activations: a decoder layer's number, or a name with *.
  std::optional<std::string> layers;
  SmoothingFlags smoothing;
  CalibrationFlags calibration{.samples = 64};  // enough to look at

  // --kv, with what belongs to it.
  std::vector<std::string> kvs;
  SessionOptions session;  // kv_type
  std::vector<int64_t> contexts;
  std::optional<std::string> shape;
};

// Throws as CommandLine::Parse does, and what is meant for --activations or --kv without it.
InspectOptions ParseInspect(std::span<const std::string> arguments);

}  // namespace godwit::cli
