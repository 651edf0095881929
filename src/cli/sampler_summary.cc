#include "cli/sampler_summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "chat/result_json.h"
#include "sampling/options.h"

namespace godwit::cli {
namespace {

// "temperature 0.7 (the model's)"; empty if the value is `off`.
template <typename Value>
void Append(std::string& text, const EffectiveSampler& sampler, const std::string& field,
            std::string_view shown, Value value, Value off) {
  if (value == off) return;
  text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", shown, value,
                      sampler.from_model.contains(field) ? " (the model's)" : "");
}

void AppendStep(std::string& text, const EffectiveSampler& sampler, SamplerStep step) {
  const SamplerOptions& options = sampler.options;
  switch (step) {
    case SamplerStep::kPenalties:
      Append(text, sampler, "repeat_penalty", "repeat penalty", options.repeat_penalty, 1.0f);
      Append(text, sampler, "presence_penalty", "presence penalty", options.presence_penalty, 0.0f);
      Append(text, sampler, "frequency_penalty", "frequency penalty", options.frequency_penalty,
             0.0f);
      break;
    case SamplerStep::kTopK:
      Append(text, sampler, "top_k", "top-k", options.top_k, 0);
      break;
    case SamplerStep::kTopP:
      Append(text, sampler, "top_p", "top-p", options.top_p, 1.0f);
      break;
    case SamplerStep::kMinP:
      Append(text, sampler, "min_p", "min-p", options.min_p, 0.0f);
      break;
    case SamplerStep::kEta:
      Append(text, sampler, "eta", "eta", options.eta, 0.0f);
      break;
    case SamplerStep::kTemperature:
      Append(text, sampler, "temperature", "temperature", options.temperature, 1.0f);
      break;
  }
}

}  // namespace

std::string DescribeSampler(const EffectiveSampler& sampler) {
  std::string text;
  const bool greedy = sampler.options.temperature == 0;
  for (const SamplerStep step : sampler.options.steps) {
    if (!greedy || step == SamplerStep::kPenalties) AppendStep(text, sampler, step);
  }
  if (greedy) {
    text += text.empty() ? "greedy" : ", greedy";
    if (sampler.from_model.contains("temperature")) text += " (the model's)";
  }
  return text.empty() ? "the model's probabilities as they are" : text;
}

nlohmann::ordered_json SamplerJson(const EffectiveSampler& sampler) {
  nlohmann::ordered_json json = chat::SamplerJson(sampler.options);
  json["from_model"] = sampler.from_model;
  return json;
}

}  // namespace godwit::cli
