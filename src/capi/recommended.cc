#include "capi/recommended.h"

#include <utility>

namespace godwit::capi {

std::vector<std::string> Recommend(const SamplerDefaults& model, SamplerOptions& sampler) {
  const auto take = [](const auto& choice, auto& option) { option = choice.value_or(option); };
  take(model.choices.repeat_last_n, sampler.repeat_last_n);
  take(model.choices.repeat_penalty, sampler.repeat_penalty);
  take(model.choices.temperature, sampler.temperature);
  take(model.choices.top_k, sampler.top_k);
  take(model.choices.top_p, sampler.top_p);
  take(model.choices.min_p, sampler.min_p);
  take(model.choices.eta, sampler.eta);
  std::vector<std::string> notes = model.not_followed;
  for (const auto& problem : model.problems) notes.push_back(problem.second);
  return notes;
}

}  // namespace godwit::capi
