// Fixed scales for the inputs of linear layers (scheme o3).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quant/calibrate.h"
#include "quant/quant_plan.h"
#include "quant/scheme.h"

namespace godwit::quant {

// The largest input that a layer tells apart, by the name of the packed weight. The parts of one
// weight (q, k and v; gate and up) share it. Its StoredScale is the scale.
using InputMaxima = std::map<std::string, float, std::less<>>;

// The largest magnitude of each smoothed input on the calibration text. Throws Error(kInput) that
// names a layer which the text never reached: an expert, perhaps.
InputMaxima StaticMaxima(const QuantPlan& plan, const Calibration& calibration,
                         const Scalings& scalings);

// The shares of clipped tokens that the search of Outlier Suppression tries: 0, 1 % ... 10 %.
std::vector<double> ClipGrid();

// Chooses for each layer one of its magnitudes `clipped`, one for each share of the grid
// (ClippedMaxima). Its scale moves the layer's outputs least on the calibration's samples; among
// equals it is the first. That is the coarse stage of token-wise clipping (arXiv 2209.13325,
// section 4.2), for each layer by its own outputs. Throws Error(kInput) as StaticMaxima does.
InputMaxima BestClipping(const Exec& exec, const QuantPlan& plan, const Scheme& scheme,
                         const Calibration& calibration, const Scalings& scalings,
                         const std::map<std::string, std::vector<float>, std::less<>>& clipped);

}  // namespace godwit::quant
