#include "checkpoint/generation_config.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "weights/hf_config.h"

namespace godwit {
namespace {

// A field that changes the choice of tokens in transformers and is not built, with the values that
// turn it off.
struct Recommendation {
  std::string_view key;
  std::string_view off;
};
constexpr Recommendation kNotBuilt[] = {{"num_beams", "[1]"},
                                        {"penalty_alpha", "[0]"},
                                        {"typical_p", "[1]"},
                                        {"epsilon_cutoff", "[0]"},
                                        {"encoder_repetition_penalty", "[1]"},
                                        {"no_repeat_ngram_size", "[0]"},
                                        {"guidance_scale", "[1]"},
                                        {"bad_words_ids", "[]"},
                                        {"sequence_bias", "[]"},
                                        {"suppress_tokens", "[]"},
                                        {"begin_suppress_tokens", "[]"},
                                        {"forced_bos_token_id", "[]"},
                                        {"forced_eos_token_id", "[]"},
                                        {"exponential_decay_length_penalty", "[]"}};

}  // namespace

SamplerDefaults ReadGenerationConfig(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "generation_config.json";
  SamplerDefaults defaults;
  if (!std::filesystem::exists(file)) return defaults;
  const HfConfig config = HfConfig::Load(file);
  SamplerChoices& choices = defaults.choices;
  const auto read = [&](std::string_view field, std::string_view key, const auto& get) {
    if (!config.Has(key)) return;
    try {
      get(key);
    } catch (const Error& error) {
      defaults.problems.emplace(field, error.what());
    }
  };
  const auto number = [&](std::string_view field, std::string_view key,
                          std::optional<float>& choice, FloatRange range) {
    read(field, key,
         [&](std::string_view name) { choice = static_cast<float>(config.Float(name, range)); });
  };
  number("temperature", "temperature", choices.temperature, {0, 1e6});
  read("temperature", "do_sample", [&](std::string_view key) {
    if (!config.BoolOr(key, true)) choices.temperature = 0;
  });
  read("top_k", "top_k", [&](std::string_view key) {
    choices.top_k = static_cast<int>(config.Int(key, {0, std::numeric_limits<int>::max()}));
  });
  number("top_p", "top_p", choices.top_p, {0, 1});
  number("min_p", "min_p", choices.min_p, {0, 1});
  number("eta", "eta_cutoff", choices.eta, {0, 1});
  number("repeat_penalty", "repetition_penalty", choices.repeat_penalty, {1e-3, 1e3});
  if (choices.repeat_penalty && *choices.repeat_penalty != 1) choices.repeat_last_n = -1;

  for (const auto& [key, off] : kNotBuilt) {
    if (!config.IsAmong(key, off)) {
      defaults.not_followed.push_back(
          fmt::format("{} is ignored: this setting is not supported", config.Spell(key)));
    }
  }
  return defaults;
}

}  // namespace godwit
