#include "quant/simulated_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "quant/linear_layers.h"
#include "tensor/weight.h"

namespace godwit::quant {
namespace {

float Simulated(float x, float magnitude) {
  if (magnitude == 0) return 0;
  const float scale = magnitude / 127.0f;
  return scale * std::clamp(std::nearbyint(x / scale), -127.0f, 127.0f);
}

float LargestMagnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

}  // namespace

InputGrid FindInputGrid(std::string_view name) {
  for (const InputGridName& known : kInputGrids) {
    if (known.name == name) return known.grid;
  }
  Throw(ErrorKind::kInput, "expected {}, found {}",
        NameList(kInputGrids, &InputGridName::name, " or "), Quote(name));
}

void SimulateInt8(InputGrid grid, std::span<const float> largest, MatrixView<float> x) {
  const float of_all = grid == InputGrid::kTensor ? LargestMagnitude(largest) : 0;
  for (int64_t i = 0; i < x.rows; ++i) {
    const std::span<float> row = x.RowSpan(i);
    const float of_row = grid == InputGrid::kToken ? LargestMagnitude(row) : of_all;
    for (size_t j = 0; j < row.size(); ++j) {
      row[j] = Simulated(row[j], grid == InputGrid::kChannel ? largest[j] : of_row);
    }
  }
}

std::map<std::string, std::vector<float>, std::less<>> LargestOfQuantized(
    const ModelTensors& tensors, const Calibration& calibration) {
  std::map<std::string, std::vector<float>, std::less<>> largest;
  for (const LayerTensors& layer : tensors.layers) {
    ForEachLinear(layer, [&](const LinearTensors& linear) {
      const auto seen = calibration.find(ModuleName(linear));
      if (seen != calibration.end()) largest[seen->first] = seen->second.largest;
    });
  }
  return largest;
}

LinearFilter SimulateInputs(InputGrid grid,
                            const std::map<std::string, std::vector<float>, std::less<>>& largest) {
  return [grid, &largest](const Weight& w, MatrixView<float> x) {
    const auto known = largest.find(w.name);
    if (known != largest.end()) SimulateInt8(grid, known->second, x);
  };
}

}  // namespace godwit::quant
