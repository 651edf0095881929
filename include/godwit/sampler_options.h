// SamplerOptions: everything that decides how a token is chosen from logits.
//
// Plain data with llama.cpp's names, defaults and order of steps. Each filter sees what the steps
// before it left, renormalised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

enum class SamplerStep { kPenalties, kTopK, kTopP, kMinP, kEta, kTemperature };

struct SamplerOptions {
  std::map<int32_t, float> logit_bias;  // token -> added to its logit, first of all; -inf bans it

  // The steps after the bias, in this order, up to the draw; a step that is not listed does not
  // run. Penalties, which look at all logits, stand first or nowhere. Eta, which llama.cpp does not
  // have, is the last of the filters.
  std::vector<SamplerStep> steps = {SamplerStep::kPenalties, SamplerStep::kTopK,
                                    SamplerStep::kTopP,      SamplerStep::kMinP,
                                    SamplerStep::kEta,       SamplerStep::kTemperature};

  // Penalties look at the last repeat_last_n tokens of the text (0: none, -1: all of it).
  int repeat_last_n = 64;
  float repeat_penalty = 1.0f;     // positive logits divided, negative multiplied; 1: off
  float presence_penalty = 0.0f;   // subtracted once from each token that occurs
  float frequency_penalty = 0.0f;  // subtracted once per occurrence

  float temperature = 0.8f;  // 0: greedy, whatever the steps; filters and seed have no say
  int top_k = 40;            // the k likeliest; 0: off
  float top_p = 0.95f;       // the fewest tokens that hold this share of probability; 1: off
  float min_p = 0.05f;       // at least this fraction of the likeliest token's probability; 0: off
  float eta = 0.0f;          // epsilon of eta sampling; 0: off

  uint64_t seed = 0;
};

// Some of the sampler options, as a model or a user chooses them; without a value: no choice.
struct SamplerChoices {
  std::optional<int> repeat_last_n;
  std::optional<float> repeat_penalty;
  std::optional<float> temperature;
  std::optional<int> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> eta;
};

// The recommendations of a model's generation_config.json.
struct SamplerDefaults {
  SamplerChoices choices;
  // Errors in recommended values that make no sense: field of SamplerChoices -> an error message.
  std::map<std::string, std::string, std::less<>> problems;
  // Recommendations that the engine cannot follow, such as beam search: a sentence each.
  std::vector<std::string> not_followed;
};

}  // namespace godwit
