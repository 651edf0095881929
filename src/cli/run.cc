// godwit run: continues one text.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "chat/result_json.h"
#include "cli/exit_code.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/options/template_options.h"
#include "cli/options/text_input.h"
#include "cli/terminal/answer_text.h"
#include "cli/terminal/generate.h"
#include "cli/terminal/output.h"
#include "cli/terminal/sampler_summary.h"
#include "cli/terminal/summary.h"
#include "cli/verbs.h"

namespace godwit::cli {
namespace {

struct RunOptions {
  ModelOptions model;
  TextInput text;
  bool chat = false;
  std::optional<std::string> system;
  std::string template_variables = "{}";
  SamplingFlags sampling;
  SessionOptions session;
  bool json = false;
};

void ParseRun(std::span<const std::string> arguments, RunOptions& options) {
  CommandLine line("run", "[-m MODEL] [-p TEXT | -f FILE] [flags]",
                   "Continues a text. Standard output carries the continuation and nothing else.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  line.Group("Prompt");
  AddTextFlags(line, options.text, "the text to continue");
  line.Add({.names = "--chat",
            .value = "",
            .help = "the text is a question to a chat model, in the words of its template"},
           options.chat);
  line.Add({.names = "-sys,--system",
            .value = "TEXT",
            .help = "what the chat model is told before the question"},
           options.system);
  AddTemplateFlags(line, options.model, options.template_variables);
  line.Group("Output");
  line.Add({.names = "--json",
            .value = "",
            .help = "print one JSON object with the text, its tokens, counts and times"},
           options.json);
  AddSamplingFlags(line, options.sampling);
  AddKvFlags(line, options.session, options.model.kv_memory_bytes);
  line.Parse(arguments);
  if (options.chat) return;
  const char* const flag = options.system                         ? "--system"
                           : !options.model.chat_template.empty() ? "--chat-template"
                           : options.template_variables != "{}"   ? "--chat-template-kwargs"
                                                                  : nullptr;
  if (flag) Throw(ErrorKind::kInput, "{} is for chat models: it needs --chat", flag);
}

std::vector<int32_t> MakePrompt(const Engine& engine, const Session& session,
                                const RunOptions& options, const std::string& text) {
  if (!options.chat) return session.Tokenize(text);
  std::vector<Message> messages;
  if (options.system) messages.push_back({.role = "system", .content = *options.system});
  messages.push_back({.role = "user", .content = text});
  return session.Tokenize(
      engine.ApplyChatTemplate(messages, /*open=*/true, options.template_variables),
      /*add_special=*/false);
}

std::string ToJson(const GenerateResult& result, const EffectiveSampler& sampler) {
  nlohmann::ordered_json json;
  json["text"] = result.text;
  json["tokens"] = result.tokens;
  json["prompt_tokens"] = result.prompt_tokens;
  json["cached_tokens"] = result.cached_tokens;
  json["read_tokens"] = result.read_tokens;
  json["generated_tokens"] = result.tokens.size();
  json["finish_reason"] = chat::FinishReasonName(result.finish_reason);
  json["sampler"] = SamplerJson(sampler);
  json["seed"] = sampler.options.seed;
  json["kv"] = chat::KvJson(result.kv);
  json["timings"] = {{"prompt_ms", result.prompt_ms},
                     {"prompt_per_second", PromptRate(result)},
                     {"predicted_ms", result.predicted_ms},
                     {"predicted_per_second", PredictedRate(result)}};
  return json.dump() + "\n";
}

}  // namespace

int Run(std::span<const std::string> arguments) {
  RunOptions options;
  ParseRun(arguments, options);
  ChooseModel(options.model);
  GenerateOptions generate = MakeGenerateOptions(options.sampling);
  const std::string text = RequirePrompt(options.text);
  AnswerText answer;
  if (!options.json) generate.on_text = [&](std::string_view piece) { answer.Write(piece); };

  // No plain dialogue in its place, as in godwit chat: a program that asks for a model's own frame
  // would be given another one without noticing.
  if (options.chat && !HasChatTemplate(options.model)) {
    Throw(ErrorKind::kUnsupported,
          "{} has no chat template, which --chat needs: give one with --chat-template FILE, leave "
          "--chat out, or talk in plain words with godwit chat",
          options.model.folder);
  }
  const Engine engine = LoadEngine(options.model, options.session);
  const EffectiveSampler sampler =
      TakeModelDefaults(options.sampling, generate.sampler, engine.sampler_defaults());
  generate.sampler = sampler.options;
  Session session = engine.NewSession(options.session);
  const auto prompt = MakePrompt(engine, session, options, text);
  const GenerateResult result =
      GenerateAtTerminal(session, prompt, generate, /*presses_to_exit=*/2);

  answer.Finish();
  if (options.json) {
    WriteOutput(ToJson(result, sampler));
  } else if (OutputIsTerminal() && !result.text.ends_with('\n')) {
    WriteOutput("\n");
  }
  if (NoticesGoToTerminal()) {
    WriteNotice(fmt::format("\n{}sampler {}\nseed    {}\n", Summarize(result),
                            DescribeSampler(sampler), sampler.options.seed));
  } else {
    SayDropped(result.kv);
  }
  return result.finish_reason == FinishReason::kCancelled ? kExitCancelled : kExitOk;
}

}  // namespace godwit::cli
