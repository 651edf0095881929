// godwit run: continues one text.

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "chat/answer_reader.h"
#include "chat/answers.h"
#include "chat/result_json.h"
#include "chat/token_texts.h"
#include "cli/answer_splitter.h"
#include "cli/commands.h"
#include "cli/file_tokens.h"
#include "cli/generate.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/options/template_options.h"
#include "cli/read_files_as_passages.h"
#include "cli/run_journal.h"
#include "cli/run_options.h"
#include "cli/summary.h"
#include "console/exit_code.h"
#include "console/options/help.h"
#include "console/options/text_input.h"
#include "console/terminal/answer_text.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "dist/mpi.h"

namespace godwit::cli {
namespace {

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

// The facts on which the output depends, besides its seed.
RunJournal::Facts FactsOf(const Engine& engine, const RunOptions& options,
                          const chat::Prompt& prompt, const GenerateOptions& generate) {
  RunJournal::Facts facts = engine.Facts(options.session);
  const nlohmann::ordered_json sampler = chat::SamplerJson(generate.sampler);
  for (const auto& [name, value] : sampler.items()) facts.emplace_back(name, value.dump());
  facts.emplace_back("prompt", ContentName({std::as_bytes(std::span(prompt.tokens))}));
  facts.emplace_back("question", fmt::format("{} tokens", generate.query_tokens));
  facts.emplace_back("limit", fmt::format("{} tokens", generate.max_tokens));
  facts.emplace_back("number of answers", fmt::format("{}", std::max(1, options.samples)));
  facts.emplace_back("schema", generate.json_schema.empty() ? "none" : generate.json_schema);
  facts.emplace_back("stop strings", fmt::format("{}", fmt::join(generate.stop, ", ")));
  return facts;
}

std::vector<GenerateResult> GenerateSamples(const Engine& engine, const RunOptions& options,
                                            const chat::Prompt& prompt,
                                            const GenerateOptions& generate, RunJournal& journal) {
  console::AnswerTexts texts(options.samples);
  std::deque<AnswerSplitter> splitters;
  for (int i = 0; i < options.samples; ++i) {
    splitters.emplace_back(prompt.form,
                           AnswerSplitter::Listener{.on_text = [&texts, i](auto piece) {
                             texts.Take(i, piece, /*done=*/false);
                           }});
  }
  return GenerateAnswersAtTerminal(
      engine, prompt.tokens, generate, options.session, options.samples, /*presses_to_exit=*/2,
      [&](int answer, const Event& event) {
        journal.Take(answer, event.tokens);
        if (options.json) return;
        AnswerSplitter& one = splitters[answer];
        one.Take(event);
        if (!event.done) return;
        one.Finish();
        texts.Take(answer, "", /*done=*/true);
      },
      [&](int answer) { return journal.BegunOf(answer); });
}

GenerateResult GenerateOne(const RunOptions& options, const chat::Prompt& prompt,
                           GenerateOptions generate, Session& session, RunJournal& journal) {
  console::AnswerText answer;
  ThoughtText thought(options.thoughts);
  AnswerSplitter splitter(prompt.form,
                          {.on_text = [&](std::string_view piece) { answer.Write(piece); },
                           .on_thought = [&](std::string_view piece) { thought.Write(piece); },
                           .on_thought_end = [&](int64_t tokens) { thought.End(tokens); }});
  generate.begun = journal.BegunOf(0).tokens;
  generate.on_event = [&](const Event& event) {
    journal.Take(0, event.tokens);
    if (!options.json) splitter.Take(event);
  };
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
  ParseRun("run",
           "Continues a text, or with --chat answers a question, also about files. Only the new "
           "text goes to standard output.",
           arguments, options);
  ChooseModel(options.model);
  RunJournal journal(options.resume);
  GenerateOptions generate = MakeGenerateOptions(options.sampling);
  if (options.sampling.seed < 0) {
    generate.sampler.seed = journal.SeedOr(generate.sampler.seed);
  }
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
  chat::Prompt prompt;
  if (options.passages) {
    ReadFilesAsPassages(engine, options, texts, session, prompt);
  } else {
    prompt = MakePrompt(engine, session, options, texts);
  }
  generate.query_tokens = options.query_tokens > 0 ? options.query_tokens : prompt.query_tokens;
  generate.thought = prompt.form.thought;
  generate.spelled_out = chat::MarksOf(prompt.form, /*with_tools=*/false);
  if (!options.resume.empty()) {
    journal.Begin(generate.sampler.seed, FactsOf(engine, options, prompt, generate));
  }
  const auto results =
      options.samples > 0
          ? GenerateSamples(engine, options, prompt, generate, journal)
          : std::vector{GenerateOne(options, prompt, std::move(generate), session, journal)};
  if (options.json) {
    auto json = RunJson(engine, options, prompt.form, sampler, results);
    chat::AddPassages(results.front(), json);
    console::WriteJson(json);
  }
  SayHowItRan(results, sampler, engine.load_times());
  const bool cancelled = std::ranges::find(results, FinishReason::kCancelled,
                                           &GenerateResult::finish_reason) != results.end();
  return cancelled ? console::kExitCancelled : console::kExitOk;
}

}  // namespace godwit::cli
