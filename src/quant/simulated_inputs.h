// Int8 inputs of linear layers, simulated (table 3.1 of the SmoothQuant thesis). Every input
// becomes the float that its integer stands for, and the product stays one of floats. A scale for
// each input channel has no integer product, so that it can be looked at in this way only.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_tensors.h"
#include "ops/linear_observer.h"
#include "quant/calibrate.h"
#include "tensor/view.h"

namespace godwit::quant {

// The inputs that share a scale (figure 3.1).
enum class InputGrid {
  kTensor,   // all inputs of a layer
  kToken,    // those of a row
  kChannel,  // those of a column
};

// Values of the channels of layers [inputs], by the name of the packed weight.
using ChannelValues = std::map<std::string, std::vector<float>, std::less<>>;

struct InputGridName {
  std::string_view name;
  InputGrid grid;
};
inline constexpr InputGridName kInputGrids[] = {{"per-tensor", InputGrid::kTensor},
                                                {"per-token", InputGrid::kToken},
                                                {"per-channel", InputGrid::kChannel}};

// The grid of a name. Throws Error(kInput) with the list for a name that is not in it.
InputGrid FindInputGrid(std::string_view name);

// Replaces each element of x [rows, inputs] by scale * round(x / scale), with integers from -127 to
// 127. A scale is the largest magnitude over 127 (equation 3.1). largest [inputs]: the magnitudes
// of the channels on a calibration text, for kTensor and kChannel. The magnitudes of kToken are
// those of the rows. Where a magnitude is 0, the integers are, too. factors [inputs], or none: the
// channels are divided by them before, and multiplied after, as smoothed weights would do.
void SimulateInt8(InputGrid grid, std::span<const float> largest, std::span<const float> factors,
                  MatrixView<float> x);

// The largest magnitudes of the channels of every layer that would be quantized, by the name of the
// packed weight. A layer that the calibration did not reach is not among them.
ChannelValues LargestOfQuantized(const ModelTensors& tensors, const Calibration& calibration);

// Simulates the layers of `largest`, and leaves others alone: the output head, routers, and experts
// that the calibration did not reach. factors: of some of the layers. `largest` must outlive the
// filter.
LinearFilter SimulateInputs(InputGrid grid, const ChannelValues& largest,
                            ChannelValues factors = {});

}  // namespace godwit::quant
