// Quantization schemes: the parts of a model that become integers, and the number of their scales.
// Those of int8 are the levels and baselines of table 3.2 of the SmoothQuant thesis; others have
// 4-bit weights.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "tensor/weight.h"

namespace godwit::quant {

inline constexpr int64_t kAllOutputs = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kGroups[] = {128, 64, 32};  // group sizes that readers of 4 bits support
inline constexpr int64_t kDefaultGroup = kGroups[0];

struct Grouping {
  int64_t size = 0;    // inputs that share a scale
  bool zeros = false;  // whether they share a zero point, too
};

struct Scheme {
  std::string_view name;
  std::string_view description;
  int64_t outputs_per_scale;  // neighbouring outputs of a weight that share a scale
  InputScale input;
  bool smooth;  // whether it is made for smoothing; baselines are not
  // The magnitude from which elements of an input are multiplied in float; 0: none are. Such a
  // model is written in bitsandbytes' format, others in that of compressed-tensors, which has no
  // outliers.
  float outlier_threshold = 0;
  // The neighbouring inputs of an output that share a scale of 4-bit integers; 0: weights are int8.
  int64_t group = 0;
  bool weights_alone = false;  // inputs stay in float
  bool zeros = false;          // groups have zero points; only with weights_alone
  // Outlier Suppression (arXiv 2209.13325): gains of norms move into the weights that read them,
  // instead of factors by the calibration. A search clips tokens of fixed scales.
  bool suppresses_outliers = false;

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
    {"outlier-suppression", "o3 with norms without gains for smoothing, and clipped tokens",
     kAllOutputs, InputScale::kStatic, true, 0, 0, false, false, true},
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

// The scheme of the int8 layers in a 4-bit model. Their inputs are read as those of other layers.
const Scheme& Int8Counterpart(const Scheme& scheme);

// The scheme of a name. Throws Error(kInput) with the list for a name that is not in it.
const Scheme& FindScheme(std::string_view name);
std::string SchemeNames();  // "w8a8, o1, ... or llm-int8"

}  // namespace godwit::quant
