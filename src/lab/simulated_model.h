// A model whose linear layers read int8 inputs that are simulated, for `eval quant --simulate`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model_folder.h"
#include "cli/options/model_options.h"
#include "cli/options/smoothing_options.h"
#include "eval/reader.h"
#include "lab/model_run.h"
#include "model/decoder.h"
#include "quant/simulated_inputs.h"

namespace godwit::lab {

class SimulatedModel {
 public:
  // Loads the model in f32 and reads the calibration text, with progress. Throws Error(kInput) for
  // a GPU, whose layers are not simulated; as LoadAsAsked, and as ReadCalibrationText does.
  SimulatedModel(cli::ModelOptions options, const cli::CalibrationFlags& calibration);
  SimulatedModel(const SimulatedModel&) = delete;
  SimulatedModel& operator=(const SimulatedModel&) = delete;

  // A reader of texts, each read anew from its beginning, by dense attention over f32 keys. The
  // model must outlive it.
  eval::Reader ReaderOf(quant::InputGrid grid) const;

 private:
  ModelFolder folder_;
  CalibrationRun run_;
  std::unique_ptr<Decoder> decoder_;
  std::map<std::string, std::vector<float>, std::less<>> largest_;
};

// Reads `tokens` into an empty text, and calls row with the logits of each token from `first` on.
void ReadLogits(const Exec& exec, const Decoder& decoder, std::span<const int32_t> tokens,
                const eval::Reader::OnRow& row, int64_t first);

}  // namespace godwit::lab
