// Statistics of the inputs of linear layers on a calibration text, such as the largest magnitude of
// every channel (section 3.3 of the SmoothQuant thesis).
//
// The ordinary forward pass runs, and an observer looks on. The result depends on the pieces and
// their order alone.
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
  std::vector<float> largest;   // [inputs] maxima of |x|
  std::vector<double> squares;  // [inputs] sums of x^2
  int64_t rows = 0;             // input rows seen
  RowSample sample;             // some of these rows
  InputProducts products;
};

// The statistics by the name of the packed weight. A layer that no token reached (an expert,
// perhaps) has none.
using Calibration = std::map<std::string, LinearStatistics, std::less<>>;

// The callback for progress, in tokens.
using CalibrationProgress = std::function<void(int64_t done, int64_t total)>;

// The statistics that a run collects.
struct CalibrationScope {
  // The layers to look at, by the name of the packed weight; none: all.
  std::optional<std::set<std::string, std::less<>>> linears;
  // Rows for a search of alpha: nearly all of a Calibration's memory.
  bool samples = true;
  // Products of inputs, which take the square of the inputs.
  bool products = false;
};

// Throws Error(kUnsupported) that names the layer whose input holds NaN or infinity.
Calibration Calibrate(const Exec& exec, const Decoder& decoder,
                      std::span<const std::vector<int32_t>> pieces,
                      const CalibrationProgress& progress, const CalibrationScope& scope = {});

// Largest magnitudes for fixed scales, by the name of the packed weight: one for each of `shares`.
// All but the largest share of a layer's input rows stay within its magnitude. Section 3.4.2 clips
// the top 2 % of the tokens. Inputs are smoothed as the columns of the weights are.
std::map<std::string, std::vector<float>, std::less<>> ClippedMaxima(
    const Exec& exec, const Decoder& decoder, std::span<const std::vector<int32_t>> pieces,
    std::span<const LinearTensors* const> linears, const Scalings& scalings,
    std::span<const double> shares, const CalibrationProgress& progress);

}  // namespace godwit::quant
