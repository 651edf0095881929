// What godwit inspect --activations says: the largest magnitudes of the channels of linear layers
// before and after smoothing (figure 3.2 of the SmoothQuant thesis).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "quant/look_at_layers.h"

namespace godwit::lab {

// How far the largest channels stand out of the others.
struct Outliers {
  float largest = 0;
  float median = 0;
  std::vector<size_t> channels;  // of the largest ones, the largest first

  double ratio() const { return static_cast<double>(largest) / static_cast<double>(median); }
};
Outliers FindOutliers(const std::vector<float>& maxima);

// A table for each layer.
std::string MaximaText(std::span<const quant::LinearMaxima> linears);

// Every channel's.
nlohmann::ordered_json MaximaJson(std::span<const quant::LinearMaxima> linears);

}  // namespace godwit::lab
