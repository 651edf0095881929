// What goes into the linear layers of a model on a calibration text (section 3.3 of the SmoothQuant
// thesis: the largest magnitude of every input channel).
//
// The ordinary forward pass runs, and an observer looks on. What comes out depends neither on the
// threads nor on anything but the pieces and their order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "ops/exec.h"
#include "quant/input_products.h"
#include "quant/row_sample.h"
#include "quant/scaled_tensor.h"

namespace godwit::quant {

struct LinearStatistics {
  std::vector<float> largest;   // [inputs] of |x|
  std::vector<double> squares;  // [inputs] sums of x^2
  int64_t rows = 0;             // that went in
  RowSample sample;             // some of them
  InputProducts products;
};

// By the name of the packed weight. What no token reached (an expert, perhaps) is not there.
using Calibration = std::map<std::string, LinearStatistics, std::less<>>;

// Tokens done, of how many.
using CalibrationProgress = std::function<void(int64_t done, int64_t total)>;

// What is kept of a run.
struct CalibrationScope {
  // The layers to look at, by the name of the packed weight; none: all.
  std::optional<std::set<std::string, std::less<>>> linears;
  bool samples = true;    // rows, for a search of alpha: nearly all that a Calibration takes
  bool products = false;  // of inputs, which take the square of them
};

// Throws Error(kUnsupported) that names the layer whose input holds NaN or infinity.
Calibration Calibrate(const Exec& exec, const Decoder& decoder,
                      std::span<const std::vector<int32_t>> pieces,
                      const CalibrationProgress& progress, const CalibrationScope& scope = {});

// For fixed scales: of the smoothed input of each of these layers, the magnitude that all but the
// largest `share` of the rows stay within (section 3.4.2: the top 2 % of the tokens are clipped).
// By the name of the packed weight; smoothed: as the columns of the weights are.
std::map<std::string, float, std::less<>> ClippedMaxima(
    const Exec& exec, const Decoder& decoder, std::span<const std::vector<int32_t>> pieces,
    std::span<const LinearTensors* const> linears, const Scalings& scalings, double share,
    const CalibrationProgress& progress);

}  // namespace godwit::quant
