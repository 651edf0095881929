// What becomes integers, and with how many scales: the levels and the baselines of table 3.2 of the
// SmoothQuant thesis, in int8, and weights of 4 bits.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "tensor/weight.h"

namespace godwit::quant {

inline constexpr int64_t kAllOutputs = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kGroups[] = {128, 64, 32};  // inputs that readers of 4 bits multiply
inline constexpr int64_t kDefaultGroup = kGroups[0];

struct Grouping {
  int64_t size = 0;    // inputs that share a scale
  bool zeros = false;  // and a zero point
};

struct Scheme {
  std::string_view name;
  std::string_view description;
  int64_t outputs_per_scale;  // how many neighbouring outputs of a weight share a scale
  InputScale input;
  bool smooth;  // what it is for; the baselines are not smoothed
  // Elements of an input of this magnitude or more are multiplied in float; 0: none. Such a model
  // is written as bitsandbytes does, others as compressed-tensors does, which has no outliers.
  float outlier_threshold = 0;
  // Neighbouring inputs of an output that share a scale, of integers of 4 bits; 0: weights are
  // int8.
  int64_t group = 0;
  bool weights_alone = false;  // the format leaves inputs as they are
  bool zeros = false;          // groups have zero points, which that of weights alone can hold

  bool has_groups() const { return group > 0; }
  Grouping grouping() const { return {.size = group, .zeros = zeros}; }
  bool is_bitsandbytes() const { return outlier_threshold > 0; }
};

inline constexpr Scheme kSchemes[] = {
    {"w8a8", "per-channel weights, per-token activations", 1, InputScale::kPerToken, true},
    {"o1", "per-tensor weights, per-token activations", kAllOutputs, InputScale::kPerToken, true},
    {"o2", "per-tensor weights, per-tensor activations", kAllOutputs, InputScale::kPerTensor, true},
    {"o3", "per-tensor weights, per-tensor static activations", kAllOutputs, InputScale::kStatic,
     true},
    {"naive", "o2 without smoothing", kAllOutputs, InputScale::kPerTensor, false},
    // In ZeroQuant the number of groups is a hyperparameter.
    {"zeroquant", "weights in groups of 16 channels, per-token activations, no smoothing", 16,
     InputScale::kPerToken, false},
    {"llm-int8", "w8a8 without smoothing, activations of 6 or more in float", 1,
     InputScale::kPerToken, false, 6.0f},
    {"w4a8", "4-bit weights in groups, per-token activations", 1, InputScale::kPerToken, true, 0,
     kDefaultGroup},
    {"w4a16", "4-bit weights in groups, activations in float", 1, InputScale::kPerToken, true, 0,
     kDefaultGroup, true},
    {"w4a16-asym", "4-bit weights in groups with zero points, activations in float", 1,
     InputScale::kPerToken, true, 0, kDefaultGroup, true, true},
};

inline constexpr const Scheme& kDefaultScheme = kSchemes[0];

// What those layers of a model of 4 bits become that are to have 8: read as the others are.
const Scheme& Int8Beside(const Scheme& scheme);

// Throws Error(kInput) with the list for a name that is not in it.
const Scheme& FindScheme(std::string_view name);
std::string SchemeNames();  // "w8a8, o1, ... or llm-int8"

}  // namespace godwit::quant
