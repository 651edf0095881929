#include "cli/options/completion_defaults.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "attention/policies/prefill_spec.h"
#include "chat/answers.h"
#include "checkpoint/model_folder.h"
#include "cli/options/cache_options.h"
#include "cli/options/kv_options.h"
#include "cli/options/template_options.h"

namespace godwit::cli {
namespace {

// The choices that a request may name, the server's own among them.
std::vector<std::string> WithChoices(const std::string& own,
                                     const std::vector<std::string>& choices) {
  std::vector<std::string> all{own};
  all.insert(all.end(), choices.begin(), choices.end());
  return all;
}

}  // namespace

void AddCompletionFlags(console::CommandLine& line, ModelOptions& model, CompletionFlags& flags) {
  AddTemplateFlags(line, model, flags.template_variables);
  AddSamplingFlags(line, flags.sampling);
  AddKvFlags(line, flags.session, model.kv_memory);
  AddCacheFlags(line, model.cache);
  AddPrefillFlags(
      line, flags.session, flags.query_tokens,
      fmt::format("the last message of a chat, or the last of a text's lines, up to {} tokens",
                  chat::kQuestionTokens));
  line.Group("Fields of requests");
  line.Add({.names = "--kv-choice",
            .value = "POLICY",
            .help = "a value of --kv that a request may choose with \"kv\"; may be repeated"},
           flags.kv_choices);
  line.Add(
      {.names = "--prefill-choice",
       .value = "HOW",
       .help = "a value of --prefill that a request may choose with \"prefill\"; may be repeated"},
      flags.prefill_choices);
  line.AddInt({.names = "--timeout",
               .value = "SECONDS",
               .help = "end a request after this time, with the text that it has; a request may "
                       "ask for less with \"timeout_ms\" (0: no limit)"},
              flags.timeout_s, 0, int64_t{1} << 32);
  line.Add({.names = "--lenient",
            .value = "",
            .help = "ignore unknown fields of requests instead of refusing the request"},
           flags.lenient);
}

void CheckCompletionFlags(const ModelFolder& folder, const CompletionFlags& flags) {
  SessionOptions session = flags.session;
  for (const std::string& kv : WithChoices(flags.session.kv, flags.kv_choices)) {
    session.kv = kv;
    CheckKvOptions(folder.spec(), session);
  }
  session.kv = flags.session.kv;
  for (const std::string& prefill : flags.prefill_choices) {
    session.prefill = prefill;
    CheckKvOptions(folder.spec(), session);
  }
}

Engine LoadEngine(const ModelFolder& folder, const ModelOptions& model,
                  const CompletionFlags& flags) {
  CheckCompletionFlags(folder, flags);
  ModelOptions loaded = model;
  TakeDraftFlags(flags.sampling, loaded);
  loaded.gpu_attention |=
      std::ranges::find(flags.prefill_choices, kGpuPrefill) != flags.prefill_choices.end();
  return LoadEngine(folder, loaded, flags.session, WithChoices(flags.session.kv, flags.kv_choices));
}

GenerateOptions MakeGenerateOptions(const CompletionFlags& flags) {
  if (flags.query_tokens > 0) {
    RequireUseOfQueryTokens(WithChoices(flags.session.prefill, flags.prefill_choices),
                            WithChoices(flags.session.kv, flags.kv_choices));
  }
  GenerateOptions generate = MakeGenerateOptions(flags.sampling);
  generate.query_tokens = flags.query_tokens;
  generate.timeout_ms = 1000.0 * static_cast<double>(flags.timeout_s);
  return generate;
}

chat::CompletionDefaults MakeCompletionDefaults(const CompletionFlags& flags,
                                                GenerateOptions generate,
                                                const SamplerDefaults& model) {
  chat::CompletionDefaults defaults{
      .kv_choices = WithChoices(flags.session.kv, flags.kv_choices),
      .prefill_choices = WithChoices(flags.session.prefill, flags.prefill_choices),
      .lenient = flags.lenient,
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
