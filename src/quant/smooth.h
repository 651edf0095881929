// SmoothQuant: how much of the difficulty of quantizing goes from the activations into the weights.
//
// A channel j is divided by s_j = A_j^alpha / W_j^(1 - alpha), where A_j is the largest magnitude
// of the channel on the calibration text and W_j that of the weights that read it, over all of them
// (equation 3.4 of the thesis). The weights' columns are multiplied by s_j: the same function.
//
// For weights of 4 bits it is AWQ's (arXiv 2306.00978): what the weights of a loud channel lose by
// rounding is heard most, so they are made larger, by s_j = R_j^alpha for the root mean square R_j
// of the channel over the geometric mean of all. An alpha of 0 changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ops/exec.h"
#include "quant/calibrate.h"
#include "quant/quant_plan.h"
#include "quant/scaled_tensor.h"
#include "quant/scheme.h"

namespace godwit::quant {

// s_j, in f32, at least 1e-5. A channel that was silent in the calibration (A_j = 0) gets 1: the
// formula would have its next sound amplified without end. So does one that no weight reads
// (W_j = 0), where it would divide by zero.
float SmoothingFactor(float activation, float weight, float alpha);

// R_j^alpha / the geometric mean of all, in f32, for the root mean squares R of channels; 1 for
// silent ones.
std::vector<float> LoudnessFactors(std::span<const float> channels, float alpha);

enum class AlphaSearch {
  kNone,      // alpha as given
  kGlobal,    // the best one for all groups together
  kPerGroup,  // the best one for each group
};

struct SmoothOptions {
  AlphaSearch search = AlphaSearch::kNone;
  float alpha = 0.5f;  // with kNone
};

// What a search tries: 0, 0.05, ... 1.
std::vector<float> AlphaGrid();

struct Smoothing {
  Scalings scalings;
  std::vector<float> alphas;  // of each group
  // Of a search, the mean over all groups of OutputError for each alpha of the grid.
  std::vector<double> curve;
};

// Bytes of weights done, of how many.
using SmoothProgress = std::function<void(int64_t done, int64_t total)>;

// The groups of a layer in their order: what divides rows of a weight is settled before the
// columns of that weight are looked at. A factor by which a norm's gain is divided is chosen among
// those that leave it exact in its stored type, so that bf16 gains cost nothing.
Smoothing Smooth(const Exec& exec, const QuantPlan& plan, const Scheme& scheme,
                 const Calibration& calibration, const SmoothOptions& options,
                 const SmoothProgress& progress);

}  // namespace godwit::quant
