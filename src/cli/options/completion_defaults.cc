#include "cli/options/completion_defaults.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace godwit::cli {

chat::CompletionDefaults MakeCompletionDefaults(const SamplingFlags& flags,
                                                GenerateOptions generate,
                                                const std::string& template_variables,
                                                const SamplerDefaults& model) {
  chat::CompletionDefaults defaults{.template_variables =
                                        nlohmann::ordered_json::parse(template_variables)};
  const EffectiveSampler effective = TakeModelDefaults(flags, generate.sampler, model);
  if (!effective.from_model.contains("repeat_last_n")) {
    defaults.repeat_last_n = effective.options.repeat_last_n;
  }
  defaults.generate = std::move(generate);
  defaults.generate.sampler = effective.options;
  return defaults;
}

}  // namespace godwit::cli
