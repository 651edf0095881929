// What becomes int8, and with how many scales: the levels of table 3.2 of the SmoothQuant thesis.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace godwit::quant {

// Where the scale of a linear layer's input comes from.
enum class InputScale {
  kToken,   // each row's own, at run time
  kTensor,  // one of all rows of a call, at run time
  kStatic,  // one for all time, from the calibration
};

struct Scheme {
  std::string_view name;
  std::string_view description;
  bool channel_weights;  // a scale for every output of a weight, else one for the whole tensor
  InputScale input;
  bool smooth;  // what it is for; the baseline is not smoothed
};

inline constexpr Scheme kSchemes[] = {
    {"w8a8", "per-channel weights, per-token activations", true, InputScale::kToken, true},
    {"o1", "per-tensor weights, per-token activations", false, InputScale::kToken, true},
    {"o2", "per-tensor weights, per-tensor activations", false, InputScale::kTensor, true},
    {"o3", "per-tensor weights, per-tensor static activations", false, InputScale::kStatic, true},
    {"naive", "o2 without smoothing", false, InputScale::kTensor, false},
};

// Throws Error(kInput) with the list for a name that is not in it.
const Scheme& FindScheme(std::string_view name);
std::string SchemeNames();  // "w8a8, o1, o2, o3 or naive"

}  // namespace godwit::quant
