// A model whose linear layers read int8 inputs that are simulated, for `eval quant --simulate`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "checkpoint/model_folder.h"
#include "cli/options/model_options.h"
#include "cli/options/smoothing_options.h"
#include "eval/reader.h"
#include "lab/model_run.h"
#include "model/decoder.h"
#include "quant/calibrate.h"
#include "quant/simulated_inputs.h"

namespace godwit::lab {

struct InputSimulation {
  quant::InputGrid grid;
  // The alpha of factors on the residual branch (residual_factors.h); nothing: there are none.
  std::optional<float> residual_alpha;
};

// Parses "per-token", "per-token:residual" with an alpha of 0.5, and "per-token:residual=0.8".
// Throws Error(kInput) for all else: factors change nothing where each channel has a scale.
InputSimulation ParseInputSimulation(std::string_view text);

// Throws Error(kUnsupported) for factors of a model whose linear layers read no residual sums, or
// whose weights are quantized.
void CheckSimulation(const InputSimulation& simulation, const ModelFolder& folder);

class SimulatedModel {
 public:
  // Loads the model in f32 and reads the calibration text, with progress. Throws Error(kInput) for
  // a GPU, whose layers are not simulated; as LoadAsAsked, and as ReadCalibrationText does.
  SimulatedModel(cli::ModelOptions options, const cli::CalibrationFlags& calibration);
  SimulatedModel(const SimulatedModel&) = delete;
  SimulatedModel& operator=(const SimulatedModel&) = delete;

  // A reader of texts, each read anew from its beginning, by dense attention over f32 keys. The
  // model must outlive it.
  eval::Reader ReaderOf(const InputSimulation& simulation) const;

 private:
  ModelFolder folder_;
  CalibrationRun run_;
  std::unique_ptr<Decoder> decoder_;
  quant::Calibration calibration_;
  quant::ChannelValues largest_;
};

// Reads `tokens` into an empty text, and calls row with the logits of each token from `first` on.
void ReadLogits(const Exec& exec, const Decoder& decoder, std::span<const int32_t> tokens,
                const eval::Reader::OnRow& row, int64_t first);

}  // namespace godwit::lab
