// godwit run: continues one text.

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chat/answer_reader.h"
#include "chat/answers.h"
#include "chat/files_in_message.h"
#include "chat/passages.h"
#include "chat/result_json.h"
#include "chat/token_texts.h"
#include "cli/answer_splitter.h"
#include "cli/commands.h"
#include "cli/file_tokens.h"
#include "cli/generate.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/options/template_options.h"
#include "cli/summary.h"
#include "console/exit_code.h"
#include "console/options/help.h"
#include "console/options/text_input.h"
#include "console/terminal/answer_text.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "dist/mpi.h"
#include "kv/snapshot_folder.h"

namespace godwit::cli {
namespace {

constexpr int kMaxSamples = 128, kMaxLogprobs = 1000;

struct RunOptions {
  ModelOptions model;
  console::TextInput text;
  std::optional<bool> chat;
  std::optional<std::string> system;
  std::string template_variables = "{}";
  SamplingFlags sampling;
  SessionOptions session;
  int64_t query_tokens = 0;  // as in MakePrompt
  ThoughtsFlag thoughts;
  bool passages = false;
  int64_t read_anew = 32;  // Session::ReadPassages
  int samples = 0;         // 0: one, without a title
  int logprobs = -1;       // GenerateOptions::top_logprobs
  std::string keep_as;     // GenerateOptions::keep_as
  bool json = false;
};

void ParseRun(std::span<const std::string> arguments, RunOptions& options) {
  console::CommandLine line("run", "[-m MODEL] [-f FILE ...] [-p TEXT] [flags]",
                            "Continues a text, or with --chat answers a question, also about "
                            "files. Only the new text goes to standard output.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  AddRankFlags(line, options.model);
  line.Group("Prompt");
  console::AddTextAndQuestionFlags(line, options.text, "the text to continue");
  line.Add({.names = "--chat",
            .value = "",
            .help = "ask a chat model in the format of its chat template: -p is the question, and "
                    "files or piped text stand before it, each with its name (--chat=0: continue "
                    "the text without a hint about the template)"},
           [&options](const std::string& value) { options.chat = console::ParseBool(value); });
  line.Add({.names = "-sys,--system",
            .value = "TEXT",
            .help = "the system message, which the chat model reads before the question"},
           options.system);
  AddTemplateFlags(line, options.model, options.template_variables);
  AddThoughtsFlag(line, options.thoughts);
  line.Add({.names = "--passages",
            .value = "",
            .help = "with --chat: read each file alone, once for all prompts, and join what was "
                    "read; with --cache in any order, with any others. Faster, but not the "
                    "model's own result"},
           options.passages);
  line.AddInt({.names = "--read-anew",
               .value = "N",
               .help = "with --passages: read the first N tokens of each file again where they "
                       "stand"},
              options.read_anew, 0);
  line.Group("Output");
  line.Add({.names = "--json",
            .value = "",
            .help = "print one JSON object with the text, its tokens, counts and times"},
           options.json);
  line.AddInt({.names = "--samples",
               .value = "K",
               .help = "write K answers to the prompt, which is read once",
               .fallback = "1",
               .is_verbs_own = true},
              options.samples, 1, kMaxSamples);
  line.AddInt({.names = "--logprobs",
               .value = "K",
               .help = "with --json: print each token's log-probability under the model, before "
                       "sampling, and the K most likely tokens in its place"},
              options.logprobs, 0, kMaxLogprobs);
  AddSamplingFlags(line, options.sampling);
  AddKvFlags(line, options.session, options.model.kv_memory);
  AddCacheFlags(line, options.model.cache);
  line.Add({.names = "--keep-as",
            .value = "NAME",
            .help = "with --cache: pin the saved text under this name, so that it is never removed "
                    "to make space (godwit cache unpin NAME ends that)"},
           options.keep_as);
  AddPrefillFlags(line, options.session, options.query_tokens,
                  fmt::format("the tokens of -p if files or piped text stand before it, else the "
                              "last of several lines; with --chat the message, up to {} tokens",
                              chat::kQuestionTokens));
  line.Needs("--logprobs", {"--json"});
  line.Needs("--passages", {"--chat"});
  line.Needs("--read-anew", {"--passages"});
  for (const char* flag : {"--samples", "--prefill", "--keep-as"}) {
    line.Exclusive({"--passages", flag});
  }
  line.Needs("--thoughts", {"--chat"});
  line.Exclusive({"--thoughts", "--json"});
  line.Exclusive({"--thoughts", "--samples"});
  line.Parse(arguments);
  if (!options.keep_as.empty()) {
    CheckPinName(options.keep_as);
    if (options.model.cache.folder.empty()) {
      Throw(ErrorKind::kInput, "--keep-as pins a saved text: it needs --cache");
    }
  }
  // Several answers as JSON have log-probabilities, because users compare them.
  if (options.samples > 0 && options.json) options.logprobs = std::max(options.logprobs, 0);
  if (options.query_tokens > 0) {
    RequireUseOfQueryTokens(std::span(&options.session.prefill, 1),
                            std::span(&options.session.kv, 1));
  }
  if (options.chat.value_or(false)) return;
  const char* const flag =
      options.system ? "--system" : GivenTemplateFlag(options.model, options.template_variables);
  if (flag) Throw(ErrorKind::kInput, "{} is for chat models: it needs --chat", flag);
}

bool AsksAboutFiles(const console::GivenTexts& texts) {
  return !texts.files.empty() && !texts.prompt.empty();
}

// The message with the files' names, if there are several texts to tell apart.
std::string MessageOf(const console::GivenTexts& texts) {
  if (texts.files.size() == 1 && texts.prompt.empty()) return texts.files.front().text;
  std::string message;
  for (const auto& [name, text] : texts.files) message += chat::FileInMessage(name, text);
  return message + texts.prompt;
}

// A prompt without a template: exactly the given bytes.
chat::Prompt MakePlainPrompt(const Session& session, const console::GivenTexts& texts) {
  std::string all;
  for (const auto& [name, text] : texts.files) all += text;
  chat::Prompt prompt{.tokens = session.Tokenize(all + texts.prompt)};
  prompt.query_tokens =
      AsksAboutFiles(texts)
          ? std::max<int64_t>(1, std::ssize(session.Tokenize(texts.prompt, /*add_special=*/false)))
          : chat::LastLineTokens(session, all + texts.prompt);
  return prompt;
}

// The question is the text of -p, if files come before it.
chat::Prompt MakePrompt(const Engine& engine, const Session& session, const RunOptions& options,
                        const console::GivenTexts& texts) {
  if (!options.chat.value_or(false)) return MakePlainPrompt(session, texts);
  std::vector<Message> messages;
  if (options.system) messages.push_back({.role = "system", .content = *options.system});
  messages.push_back({.role = "user", .content = MessageOf(texts)});
  if (!AsksAboutFiles(texts)) {
    return chat::PromptOf(engine, session, messages, options.template_variables);
  }
  const std::string text =
      engine.ApplyChatTemplate(messages, /*open=*/true, options.template_variables);
  const auto tokenize = [&session](std::string_view part) {
    return session.Tokenize(part, /*add_special=*/false);
  };
  chat::Prompt prompt{.tokens = tokenize(text)};
  prompt.form =
      chat::FormOf(text, [&tokenize](std::string_view part) { return tokenize(part).size() == 1; });
  const int64_t most = std::min(chat::kQuestionTokens, std::ssize(prompt.tokens));
  prompt.query_tokens = chat::TokensFrom(texts.prompt, text, tokenize).value_or(most);
  return prompt;
}

// Reads the files of the prompt as passages, and makes the prompt one that begins with them.
PassagesRead ReadFilesAsPassages(const Engine& engine, const RunOptions& options,
                                 const console::GivenTexts& texts, Session& session,
                                 chat::Prompt& prompt) {
  std::vector<Message> messages;
  if (options.system) messages.push_back({.role = "system", .content = *options.system});
  messages.push_back({.role = "user", .content = MessageOf(texts)});
  std::vector<std::string> passages;
  for (const auto& [name, text] : texts.files) passages.push_back(chat::FileInMessage(name, text));
  const chat::PassagePrompt cut = chat::CutAtPassages(
      engine.ApplyChatTemplate(messages, /*open=*/true, options.template_variables), passages,
      [&](std::string_view part) { return session.Tokenize(part, /*add_special=*/false); });
  PassagesRead read = ReadPassagesAtTerminal(session, cut.head, cut.passages, options.read_anew,
                                             /*presses_to_exit=*/2);
  prompt.tokens = read.tokens;
  prompt.tokens.insert(prompt.tokens.end(), cut.rest.begin(), cut.rest.end());
  prompt.query_tokens = std::ssize(cut.rest);
  if (!console::NoticesAreSilent()) {
    console::WriteNotice(console::WrapStatus(fmt::format(
                             "godwit: {} of {} tokens stand where they were not read: the answer "
                             "is not exactly the model's own",
                             read.reused_tokens, prompt.tokens.size())) +
                         "\n");
  }
  return read;
}

// Counts of tokens are written before the texts are read, so even before a refusal.
void SayTokens(const Engine& engine, const Session& session, const console::GivenTexts& texts) {
  if (texts.files.size() < (texts.prompt.empty() ? 2 : 1) || console::NoticesAreSilent()) return;
  std::vector<console::NamedText> all = texts.files;
  if (AsksAboutFiles(texts)) all.push_back({"-p", texts.prompt});
  const auto encode = [&engine](std::string_view text, int64_t limit_tokens) {
    return engine.Tokenize(text, /*add_special=*/false, limit_tokens);
  };
  const int64_t limit = std::max(session.limit_tokens(), engine.max_context());
  console::WriteNotice(console::WrapStatus("godwit: " + Describe(CountTokens(all, limit, encode))) +
                       "\n");
}

// Tells the user about --chat if the model has a template. Without it a continued question looks
// like a bad answer. Scripts continue texts on purpose, but a question about files wants an answer.
void SayThereIsATemplate(const Engine& engine, const RunOptions& options,
                         const console::GivenTexts& texts) {
  const bool is_heard = AsksAboutFiles(texts) || console::NoticesGoToTerminal();
  if (options.chat || !is_heard || console::NoticesAreSilent()) return;
  try {
    if (!engine.has_chat_template()) return;
  } catch (const Error&) {
    return;  // a broken template is no reason to refuse a plain text
  }
  console::WriteNotice(
      console::WrapStatus("godwit: continuing the text as it stands. This model has a chat "
                          "template: --chat makes it answer (--chat=0 hides this hint)") +
      "\n");
}

void PutSampler(const EffectiveSampler& sampler, nlohmann::ordered_json& json) {
  json["sampler"] = SamplerJson(sampler);
  json["seed"] = sampler.options.seed;
}

// sampler: set if only this result used it.
nlohmann::ordered_json ResultJson(const GenerateResult& result, const RunOptions& options,
                                  const chat::AnswerForm& form, const EffectiveSampler* sampler,
                                  chat::TokenTexts& texts) {
  const chat::WholeAnswer answer = chat::ReadAnswer({}, form, result.text);
  nlohmann::ordered_json json;
  json["text"] = answer.text;
  if (!answer.thought.empty()) {
    json["reasoning_content"] = answer.thought;
    json["reasoning_tokens"] = result.thought_tokens;
  }
  json["tokens"] = result.tokens;
  json["prompt_tokens"] = result.prompt_tokens;
  json["cached_tokens"] = result.cached_tokens;
  json["disk_tokens"] = result.disk_tokens;
  json["read_tokens"] = result.read_tokens;
  json["generated_tokens"] = result.tokens.size();
  json["finish_reason"] = chat::FinishReasonName(result.finish_reason);
  if (sampler != nullptr) PutSampler(*sampler, json);
  if (options.logprobs >= 0) json["logprobs"] = chat::LogprobsJson(result, texts);
  json["kv"] = chat::KvJson(result.kv);
  if (result.drafts) json["drafts"] = chat::DraftsJson(*result.drafts);
  json["timings"] = {{"prompt_ms", result.prompt_ms},
                     {"prompt_per_second", PromptRate(result)},
                     {"predicted_ms", result.predicted_ms},
                     {"predicted_per_second", PredictedRate(result)}};
  return json;
}

nlohmann::ordered_json RunJson(const Engine& engine, const RunOptions& options,
                               const chat::AnswerForm& form, const EffectiveSampler& sampler,
                               std::span<const GenerateResult> results) {
  chat::TokenTexts texts(engine);
  nlohmann::ordered_json json;
  if (options.samples == 0) {
    json = ResultJson(results.front(), options, form, &sampler, texts);
    json["load"] = LoadJson(engine.load_times());
    return json;
  }
  for (const GenerateResult& result : results) {
    json["answers"].push_back(ResultJson(result, options, form, nullptr, texts));
  }
  PutSampler(sampler, json);
  json["load"] = LoadJson(engine.load_times());
  return json;
}

std::vector<GenerateResult> GenerateSamples(const Engine& engine, const RunOptions& options,
                                            const chat::Prompt& prompt,
                                            const GenerateOptions& generate) {
  console::AnswerTexts texts(options.samples);
  std::deque<AnswerSplitter> splitters;
  for (int i = 0; i < options.samples; ++i) {
    splitters.emplace_back(prompt.form,
                           AnswerSplitter::Listener{.on_text = [&texts, i](auto piece) {
                             texts.Take(i, piece, /*done=*/false);
                           }});
  }
  return GenerateAnswersAtTerminal(engine, prompt.tokens, generate, options.session,
                                   options.samples, /*presses_to_exit=*/2,
                                   [&](int answer, const Event& event) {
                                     if (options.json) return;
                                     AnswerSplitter& one = splitters[answer];
                                     one.Take(event);
                                     if (!event.done) return;
                                     one.Finish();
                                     texts.Take(answer, "", /*done=*/true);
                                   });
}

GenerateResult GenerateOne(const RunOptions& options, const chat::Prompt& prompt,
                           GenerateOptions generate, Session& session) {
  console::AnswerText answer;
  ThoughtText thought(options.thoughts);
  AnswerSplitter splitter(prompt.form,
                          {.on_text = [&](std::string_view piece) { answer.Write(piece); },
                           .on_thought = [&](std::string_view piece) { thought.Write(piece); },
                           .on_thought_end = [&](int64_t tokens) { thought.End(tokens); }});
  if (!options.json) generate.on_event = [&](const Event& event) { splitter.Take(event); };
  GenerateResult result =
      GenerateAtTerminal(session, prompt.tokens, generate, /*presses_to_exit=*/2);
  splitter.Finish();
  answer.Finish();
  if (!options.json && console::OutputIsTerminal() && !splitter.text().ends_with('\n'))
    console::WriteOutput("\n");
  return result;
}

void SayHowItRan(std::span<const GenerateResult> results, const EffectiveSampler& sampler,
                 const LoadTimes& load) {
  if (!console::NoticesGoToTerminal()) {
    const auto seen = [](const GenerateResult& result) { return result.kv.seen; };
    return SayDropped(std::ranges::max_element(results, {}, seen)->kv);
  }
  for (const GenerateResult& result : results)
    console::WriteNotice(fmt::format("\n{}", Summarize(result)));
  console::WriteNotice(fmt::format("sampler {}\nseed    {}\nload    {}\n", DescribeSampler(sampler),
                                   sampler.options.seed, DescribeLoad(load)));
}

}  // namespace

int Run(std::span<const std::string> arguments) {
  RunOptions options;
  ParseRun(arguments, options);
  ChooseModel(options.model);
  GenerateOptions generate = MakeGenerateOptions(options.sampling);
  const bool leads = MpiRank() == 0;  // the others have its prompt, and no standard input
  // Standard input is a pipe under mpirun, which may never end.
  const console::GivenTexts texts =
      leads ? console::RequireTexts(options.text, /*takes_pipe=*/MpiSize() == 1)
            : console::GivenTexts();
  generate.top_logprobs = options.logprobs;
  generate.keep_as = options.keep_as;

  // Unlike godwit chat, run does not fall back to plain dialogue. A program that asks for the
  // model's own template would get another one without noticing.
  if (options.chat.value_or(false)) {
    RequireChatTemplate(options.model, "--chat needs",
                        "leave --chat out, or use godwit chat, which talks without a template");
  }
  TakeDraftFlags(options.sampling, options.model);
  const Engine engine = LoadEngine(options.model, options.session);
  if (!leads) {
    engine.FollowRankZero();
    return console::kExitOk;
  }
  const EffectiveSampler sampler =
      TakeModelDefaults(options.sampling, generate.sampler, engine.sampler_defaults());
  generate.sampler = sampler.options;
  Session session = engine.NewSession(options.session);
  SayThereIsATemplate(engine, options, texts);
  SayTokens(engine, session, texts);
  auto prompt = MakePrompt(engine, session, options, texts);
  std::optional<PassagesRead> passages;
  if (options.passages) {
    if (!AsksAboutFiles(texts)) {
      Throw(ErrorKind::kInput, "--passages are files, and -p a question about them: give both");
    }
    passages = ReadFilesAsPassages(engine, options, texts, session, prompt);
  }
  generate.query_tokens = options.query_tokens > 0 ? options.query_tokens : prompt.query_tokens;
  generate.thought = prompt.form.thought;
  generate.spelled_out = chat::MarksOf(prompt.form, /*with_tools=*/false);
  const auto results =
      options.samples > 0 ? GenerateSamples(engine, options, prompt, generate)
                          : std::vector{GenerateOne(options, prompt, std::move(generate), session)};
  if (options.json) {
    auto json = RunJson(engine, options, prompt.form, sampler, results);
    if (passages) {
      json["passages"] = {{"cached_tokens", passages->cached_tokens},
                          {"reused_tokens", passages->reused_tokens},
                          {"anew_tokens", passages->anew_tokens}};
    }
    console::WriteJson(json);
  }
  SayHowItRan(results, sampler, engine.load_times());
  const bool cancelled = std::ranges::find(results, FinishReason::kCancelled,
                                           &GenerateResult::finish_reason) != results.end();
  return cancelled ? console::kExitCancelled : console::kExitOk;
}

}  // namespace godwit::cli
