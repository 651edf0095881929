#include "cli/options/completion_defaults.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "chat/answers.h"
#include "cli/options/cache_options.h"
#include "cli/options/kv_options.h"
#include "cli/options/template_options.h"

namespace godwit::cli {

void AddCompletionFlags(CommandLine& line, ModelOptions& model, CompletionFlags& flags) {
  AddTemplateFlags(line, model, flags.template_variables);
  AddSamplingFlags(line, flags.sampling);
  AddKvFlags(line, flags.session, model.kv_memory);
  AddCacheFlags(line, model.cache);
  AddPrefillFlags(
      line, flags.session, flags.query_tokens,
      fmt::format("the last message of a chat, up to {} of them; the last token of a text",
                  chat::kQuestionTokens));
}

GenerateOptions MakeGenerateOptions(const CompletionFlags& flags) {
  GenerateOptions generate = MakeGenerateOptions(flags.sampling);
  generate.query_tokens = flags.query_tokens;
  return generate;
}

chat::CompletionDefaults MakeCompletionDefaults(const CompletionFlags& flags,
                                                GenerateOptions generate,
                                                const SamplerDefaults& model) {
  chat::CompletionDefaults defaults{
      .random_seeds = flags.sampling.seed < 0,
      .template_variables = nlohmann::ordered_json::parse(flags.template_variables)};
  const EffectiveSampler effective = TakeModelDefaults(flags.sampling, generate.sampler, model);
  if (!effective.from_model.contains("repeat_last_n")) {
    defaults.repeat_last_n = effective.options.repeat_last_n;
  }
  defaults.generate = std::move(generate);
  defaults.generate.sampler = effective.options;
  return defaults;
}

}  // namespace godwit::cli
