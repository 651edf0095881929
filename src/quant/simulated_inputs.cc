#include "quant/simulated_inputs.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <utility>

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

void SimulateInt8(InputGrid grid, std::span<const float> largest, std::span<const float> factors,
                  MatrixView<float> x) {
  assert(factors.empty() || std::ssize(factors) == x.cols);
  const auto factor = [&](size_t j) { return factors.empty() ? 1.0f : factors[j]; };
  float of_all = 0;
  if (grid == InputGrid::kTensor) {
    for (size_t j = 0; j < largest.size(); ++j) {
      of_all = std::max(of_all, std::fabs(largest[j] / factor(j)));
    }
  }
  for (int64_t i = 0; i < x.rows; ++i) {
    const std::span<float> row = x.RowSpan(i);
    for (size_t j = 0; j < row.size(); ++j) row[j] /= factor(j);
    const float of_row = grid == InputGrid::kToken ? LargestMagnitude(row) : of_all;
    for (size_t j = 0; j < row.size(); ++j) {
      const float magnitude =
          grid == InputGrid::kChannel ? std::fabs(largest[j] / factor(j)) : of_row;
      row[j] = factor(j) * Simulated(row[j], magnitude);
    }
  }
}

ChannelValues LargestOfQuantized(const ModelTensors& tensors, const Calibration& calibration) {
  ChannelValues largest;
  for (const LayerTensors& layer : tensors.layers) {
    ForEachLinear(layer, [&](const LinearTensors& linear) {
      const auto seen = calibration.find(ModuleName(linear));
      if (seen != calibration.end()) largest[seen->first] = seen->second.largest;
    });
  }
  return largest;
}

LinearFilter SimulateInputs(InputGrid grid, const ChannelValues& largest, ChannelValues factors) {
  return [grid, &largest, factors = std::move(factors)](const Weight& w, MatrixView<float> x) {
    const auto known = largest.find(w.name);
    if (known == largest.end()) return;
    const auto divisors = factors.find(w.name);
    SimulateInt8(grid, known->second,
                 divisors == factors.end() ? std::span<const float>() : divisors->second, x);
  };
}

}  // namespace godwit::quant
