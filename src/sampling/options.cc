#include "sampling/options.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/name_list.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "base/split_text.h"

namespace godwit {
namespace {

void Require(bool valid, std::string_view field, std::string_view expected, double found) {
  if (!valid) Throw(ErrorKind::kInput, "{} must be {}, not {}", field, expected, found);
}

struct NamedStep {
  std::string_view name;
  SamplerStep step;
};

constexpr NamedStep kSteps[] = {{"penalties", SamplerStep::kPenalties},
                                {"top_k", SamplerStep::kTopK},
                                {"top_p", SamplerStep::kTopP},
                                {"min_p", SamplerStep::kMinP},
                                {"eta", SamplerStep::kEta},
                                {"temperature", SamplerStep::kTemperature}};

constexpr std::string_view kNotBuilt[] = {"dry",     "top_n_sigma", "typ_p",
                                          "typical", "xtc",         "infill"};

SamplerStep ParseStep(std::string name) {
  std::ranges::replace(name, '-', '_');
  const auto found =
      std::ranges::find(kSteps, name == "temp" ? "temperature" : name, &NamedStep::name);
  if (found != std::end(kSteps)) return found->step;
  const std::string known = NameList(kSteps, &NamedStep::name);
  if (std::ranges::find(kNotBuilt, name) != std::end(kNotBuilt)) {
    Throw(ErrorKind::kUnsupported, "the sampler {} is not built; there are: {}", name, known);
  }
  std::vector<std::string> names;
  for (const NamedStep& step : kSteps) names.emplace_back(step.name);
  const auto nearest = Nearest(name, names);
  Throw(ErrorKind::kInput, "{} is no sampler; {}there are: {}", Quote(name),
        nearest ? fmt::format("did you mean {}? ", *nearest) : "", known);
}

// Requires that each step comes at most once, penalties first.
void ValidateSteps(const std::vector<SamplerStep>& steps) {
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (std::find(steps.begin(), step, *step) != step) {
      Throw(ErrorKind::kInput, "the samplers name {} twice", Name(*step));
    }
    if (*step == SamplerStep::kPenalties && step != steps.begin()) {
      Throw(ErrorKind::kInput,
            "penalties must be the first of the samplers, as they look at all "
            "logits, not behind {}",
            Name(*std::prev(step)));
    }
  }
}

// False for NaN, because every comparison with it is false.
bool InRange(float value, float low, float high) { return value >= low && value <= high; }

}  // namespace

std::string_view Name(SamplerStep step) {
  return std::ranges::find(kSteps, step, &NamedStep::step)->name;
}

std::vector<SamplerStep> ParseSteps(std::string_view names) {
  std::vector<SamplerStep> steps;
  for (const std::string_view name : SplitAt(';', names)) {
    steps.push_back(ParseStep(std::string(name)));
  }
  return steps;
}

void Validate(const SamplerOptions& options, int32_t vocab) {
  ValidateSteps(options.steps);
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < 0 || token >= vocab) {
      Throw(ErrorKind::kInput, "logit_bias names token {}, but the vocabulary is 0 to {}", token,
            vocab - 1);
    }
    if (std::isnan(bias) || (std::isinf(bias) && bias > 0)) {
      Throw(ErrorKind::kInput, "logit_bias of token {} must be a number or -inf, not {}", token,
            bias);
    }
  }
  Require(options.repeat_last_n >= -1, "repeat_last_n", "at least 0, or -1 for the whole text",
          options.repeat_last_n);
  Require(options.repeat_penalty > 0 && std::isfinite(options.repeat_penalty), "repeat_penalty",
          "a number greater than 0 (1 turns it off)", options.repeat_penalty);
  Require(std::isfinite(options.presence_penalty), "presence_penalty", "a finite number",
          options.presence_penalty);
  Require(std::isfinite(options.frequency_penalty), "frequency_penalty", "a finite number",
          options.frequency_penalty);
  Require(options.temperature >= 0 && std::isfinite(options.temperature), "temperature",
          "a number of at least 0 (0 is greedy)", options.temperature);
  Require(options.top_k >= 0, "top_k", "at least 0 (0 turns it off)", options.top_k);
  Require(InRange(options.top_p, 0, 1), "top_p", "between 0 and 1 (1 turns it off)", options.top_p);
  Require(InRange(options.min_p, 0, 1), "min_p", "between 0 and 1 (0 turns it off)", options.min_p);
  Require(InRange(options.eta, 0, 1), "eta", "between 0 and 1 (0 turns it off)", options.eta);
}

}  // namespace godwit
