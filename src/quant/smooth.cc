#include "quant/smooth.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "quant/channel_maxima.h"
#include "quant/output_error.h"
#include "tensor/float_bytes.h"

namespace godwit::quant {
namespace {

constexpr float kMinFactor = 1e-5f;

// [channels] The largest input in calibration, over all linear layers and columns of a channel.
std::vector<float> ActivationMaxima(const SmoothGroup& group, const Calibration& calibration) {
  std::vector<float> maxima(group.channels);
  for (const LinearTensors* linear : group.linears) {
    const auto seen = calibration.find(ModuleName(*linear));
    if (seen == calibration.end()) continue;
    for (size_t i = 0; i < group.input_channels.size(); ++i) {
      float& largest = maxima[group.input_channels[i]];
      largest = std::max(largest, seen->second.largest[i]);
    }
  }
  return maxima;
}

// [channels] The root mean square in calibration, over all linear layers and columns of a channel.
std::vector<float> RootMeanSquares(const SmoothGroup& group, const Calibration& calibration) {
  std::vector<double> squares(group.channels), rows(squares);
  for (const LinearTensors* linear : group.linears) {
    const auto seen = calibration.find(ModuleName(*linear));
    if (seen == calibration.end()) continue;
    for (size_t i = 0; i < group.input_channels.size(); ++i) {
      squares[group.input_channels[i]] += seen->second.squares[i];
      rows[group.input_channels[i]] += static_cast<double>(seen->second.rows);
    }
  }
  std::vector<float> roots;
  for (size_t i = 0; i < squares.size(); ++i) {
    roots.push_back(rows[i] > 0 ? static_cast<float>(std::sqrt(squares[i] / rows[i])) : 0);
  }
  return roots;
}

// [channels] The largest weights, after the division of their rows by `scalings`.
std::vector<float> WeightMaxima(const Exec& exec, const SmoothGroup& group,
                                const Scalings& scalings) {
  std::vector<float> maxima(group.channels);
  for (const LinearTensors* linear : group.linears) {
    Scalings rows_alone;
    for (const MatrixPart& part : PartsOf(*linear)) {
      rows_alone[part.name].row_divisors = FindScaling(scalings, part.name).row_divisors;
    }
    const std::vector<float> of_columns = LargestWeights(exec, *linear, rows_alone);
    for (size_t i = 0; i < of_columns.size(); ++i) {
      float& largest = maxima[group.input_channels[i]];
      largest = std::max(largest, of_columns[i]);
    }
  }
  return maxima;
}

// Changes `s` to the nearest factors that divide a norm's gain without rounding: gain over the
// stored value of gain / s. 1 if the type has no such number.
void MakeExact(const MatrixPart& gain, std::vector<float>& s) {
  const std::vector<std::byte> divided = ScaledBytes(gain, {.row_divisors = s});
  std::vector<float> before(s.size()), after(s.size());
  ReadFloats(*gain.tensor->dtype, gain.tensor->bytes.data(), before);
  ReadFloats(*gain.tensor->dtype, divided.data(), after);
  for (size_t i = 0; i < s.size(); ++i) {
    if (before[i] == 0) continue;
    const float exact = before[i] / after[i];
    s[i] = std::isnormal(exact) && std::isfinite(after[i]) ? exact : 1;
  }
}

// Sizes that determine a group's factors: maxima of activations and weights. If weights have
// groups: root mean squares of activations alone.
struct GroupSizes {
  std::vector<float> activations, weights;  // [channels]
};

// [channels] The gains of the norm of a group; 1 where a gain is 0, and where no norm is divided.
std::vector<float> GainFactors(const SmoothGroup& group) {
  const MatrixPart& gain = group.divided.front().part;
  std::vector<float> s(group.channels, 1.0f);
  if (gain.tensor->shape.size() != 1) return s;
  ReadFloats(*gain.tensor->dtype, gain.tensor->bytes.data(), s);
  for (float& factor : s) {
    if (factor == 0 || !std::isfinite(factor)) factor = 1;
  }
  return s;
}

std::vector<float> GroupFactors(const SmoothGroup& group, const GroupSizes& sizes, float alpha) {
  std::vector<float> s;
  if (sizes.weights.empty()) s = RmsFactors(sizes.activations, alpha);
  for (size_t i = 0; i < sizes.weights.size(); ++i) {
    s.push_back(SmoothingFactor(sizes.activations[i], sizes.weights[i], alpha));
  }
  const MatrixPart& first = group.divided.front().part;
  if (first.tensor->shape.size() == 1) MakeExact(first, s);
  return s;
}

OutputError GroupError(const Exec& exec, const QuantPlan& plan, const SmoothGroup& group,
                       const Scheme& scheme, const Calibration& calibration,
                       const Scalings& scalings) {
  OutputError error;
  for (const LinearTensors* linear : group.linears) {
    const auto seen = calibration.find(ModuleName(*linear));
    if (seen == calibration.end()) continue;  // an expert that no token went to
    if (std::ranges::find(plan.linears, linear) == plan.linears.end()) continue;  // kept in float
    const auto largest = LargestInputs(*linear, calibration, scalings);
    error.Add(LinearOutputError(exec, *linear, seen->second.sample.rows(), scalings,
                                plan.SchemeOf(*linear, scheme), std::ranges::max(largest)));
  }
  return error;
}

int64_t WeightBytes(const SmoothGroup& group) {
  int64_t bytes = 0;
  for (const LinearTensors* linear : group.linears) {
    for (const TensorInfo* part : linear->parts) bytes += std::ssize(part->bytes);
  }
  return bytes;
}

size_t Best(const std::vector<double>& errors) {
  return static_cast<size_t>(std::ranges::min_element(errors) - errors.begin());
}

}  // namespace

float SmoothingFactor(float activation, float weight, float alpha) {
  if (activation == 0 || weight == 0) return 1;
  return std::max(std::pow(activation, alpha) / std::pow(weight, 1 - alpha), kMinFactor);
}

std::vector<float> RmsFactors(std::span<const float> channels, float alpha) {
  double logs = 0;
  int64_t heard = 0;
  for (const float x : channels) {
    if (x == 0) continue;
    logs += std::log(double{x});
    ++heard;
  }
  const double mean = heard > 0 ? std::exp(logs / static_cast<double>(heard)) : 1;
  std::vector<float> s;
  for (const float x : channels) {
    const double factor = x == 0 ? 1 : std::pow(double{x} / mean, double{alpha});
    s.push_back(std::max(static_cast<float>(factor), kMinFactor));
  }
  return s;
}

std::vector<float> SmoothingFactors(const Exec& exec, const SmoothGroup& group,
                                    const Calibration& calibration, float alpha) {
  const std::vector<float> inputs = ActivationMaxima(group, calibration);
  const std::vector<float> weights = WeightMaxima(exec, group, {});
  std::vector<float> s;
  for (size_t i = 0; i < inputs.size(); ++i) {
    s.push_back(SmoothingFactor(inputs[i], weights[i], alpha));
  }
  return s;
}

std::vector<float> AlphaGrid() {
  std::vector<float> grid;
  for (int i = 0; i <= 20; ++i) grid.push_back(static_cast<float>(i) / 20);
  return grid;
}

Smoothing Smooth(const Exec& exec, const QuantPlan& plan, const Scheme& scheme,
                 const Calibration& calibration, const SmoothOptions& options,
                 const SmoothProgress& progress) {
  const bool search = options.search != AlphaSearch::kNone;
  const bool per_group = options.search == AlphaSearch::kPerGroup;
  const std::vector<float> alphas = search ? AlphaGrid() : std::vector{options.alpha};
  // Scalings that are settled so far. With kGlobal, each alpha has its own.
  std::vector<Scalings> settled(per_group ? 1 : alphas.size());
  std::vector<double> curve(alphas.size());
  Smoothing result;
  int64_t total = 0, done = 0;
  for (const SmoothGroup& group : plan.smooth.groups) total += WeightBytes(group);
  for (const SmoothGroup& group : plan.smooth.groups) {
    GroupSizes sizes{.activations = scheme.has_groups() ? RootMeanSquares(group, calibration)
                                                        : ActivationMaxima(group, calibration)};
    const auto settle = [&](float alpha, Scalings& scalings) {
      if (scheme.suppresses_outliers) return AddGroup(group, GainFactors(group), scalings);
      if (!scheme.has_groups()) sizes.weights = WeightMaxima(exec, group, scalings);
      AddGroup(group, GroupFactors(group, sizes, alpha), scalings);
    };
    std::vector<double> errors(alphas.size());
    for (size_t i = 0; i < alphas.size(); ++i) {
      Scalings& scalings = settled[per_group ? 0 : i];
      settle(alphas[i], scalings);
      if (!search) continue;
      errors[i] = GroupError(exec, plan, group, scheme, calibration, scalings).relative();
      curve[i] += errors[i] / static_cast<double>(plan.smooth.groups.size());
    }
    if (per_group) {
      result.alphas.push_back(alphas[Best(errors)]);
      settle(result.alphas.back(), settled[0]);
    }
    done += WeightBytes(group);
    if (progress) progress(done, total);
  }
  const size_t best = per_group ? 0 : Best(curve);
  result.scalings = std::move(settled[best]);
  if (scheme.suppresses_outliers) return result;  // has no alpha
  if (!per_group) result.alphas.assign(plan.smooth.groups.size(), alphas[best]);
  if (search) result.curve = std::move(curve);
  return result;
}

}  // namespace godwit::quant
