// The report of godwit inspect --activations: the largest magnitudes of the channels of linear
// layers before and after smoothing (figure 3.2 of the SmoothQuant thesis).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "quant/look_at_layers.h"

namespace godwit::lab {

// The distance of the largest channels from the others.
struct Outliers {
  float largest = 0;
  float median = 0;
  std::vector<size_t> channels;  // the largest ones, the largest first

  double ratio() const { return static_cast<double>(largest) / static_cast<double>(median); }
};
Outliers FindOutliers(const std::vector<float>& maxima);

// The maxima as a table for each layer.
std::string MaximaText(std::span<const quant::LinearMaxima> linears);

// The maxima of every channel.
nlohmann::ordered_json MaximaJson(std::span<const quant::LinearMaxima> linears);

}  // namespace godwit::lab
