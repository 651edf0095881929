// SmoothQuant moves some of the difficulty of quantizing from the activations into the weights.
//
// A channel j is divided by s_j = A_j^alpha / W_j^(1 - alpha). A_j is the largest magnitude of the
// channel on the calibration text, W_j that of all weights that read it (equation 3.4 of the
// thesis). The weights' columns are multiplied by s_j: the same function.
//
// Outlier Suppression (arXiv 2209.13325, section 4.1) is the same with other factors: s_j is the
// gain of the norm, which becomes 1. Its "non-scaling LayerNorm" thus leaves the activations as
// they are without a gain. A group without a norm stays as it is.
//
// For 4-bit weights it is AWQ's method (arXiv 2306.00978). Rounding errors of weights that read a
// large channel matter most, so these weights are made larger: s_j = R_j^alpha / the geometric mean
// of all. R_j is the root mean square of the channel. An alpha of 0 changes nothing.
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

// s_j, in f32, at least 1e-5. A channel that was zero in the calibration (A_j = 0) gets 1: the
// formula would amplify its next value without end. A channel that no weight reads (W_j = 0) gets
// 1, too, as the formula would divide by zero.
float SmoothingFactor(float activation, float weight, float alpha);

// R_j^alpha / the geometric mean of all, in f32, for the root mean squares R of channels; 1 where R
// is 0.
std::vector<float> RmsFactors(std::span<const float> channels, float alpha);

// [channels] s_j of a group whose rows nothing has divided yet. A_j and W_j are those of the
// calibration text and of the stored weights.
std::vector<float> SmoothingFactors(const Exec& exec, const SmoothGroup& group,
                                    const Calibration& calibration, float alpha);

enum class AlphaSearch {
  kNone,      // alpha is given
  kGlobal,    // the best one for all groups together
  kPerGroup,  // the best one for each group
};

struct SmoothOptions {
  AlphaSearch search = AlphaSearch::kNone;
  float alpha = 0.5f;  // with kNone
};

// The alphas that a search tries: 0, 0.05, ... 1.
std::vector<float> AlphaGrid();

struct Smoothing {
  Scalings scalings;
  std::vector<float> alphas;  // one for each group; empty for Outlier Suppression
  // The mean OutputError over all groups for each alpha of the grid; empty without a search.
  std::vector<double> curve;
};

// The callback for progress, in bytes of weights.
using SmoothProgress = std::function<void(int64_t done, int64_t total)>;

// Smooths the groups of a layer in their order: divisors of a weight's rows are settled before its
// columns are looked at. A factor that divides a norm's gain leaves it exact in its stored type, so
// that bf16 gains cost nothing.
Smoothing Smooth(const Exec& exec, const QuantPlan& plan, const Scheme& scheme,
                 const Calibration& calibration, const SmoothOptions& options,
                 const SmoothProgress& progress);

}  // namespace godwit::quant
