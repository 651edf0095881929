#include "chat/answers.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "chat/continued_message.h"
#include "chat/echo.h"
#include "chat/passage_answer.h"

namespace godwit::chat {
namespace {

// The wait for one answer when none of several had events, and the delay until a cancelled token is
// noticed. Both are short beside the time that an unread answer is held up.
constexpr double kWaitMs = 10;

constexpr size_t kMaxTokenBytes = 64;  // of nearly every token

}  // namespace

Prompt PromptOf(const Engine& engine, const Session& session, std::span<const Message> messages,
                std::string_view template_variables, std::string_view tools, bool continues) {
  std::string text = RenderOpen(engine, messages, continues, template_variables, tools);
  Prompt prompt{.tokens = session.Tokenize(text, /*add_special=*/false),
                .query_tokens = kQuestionTokens};
  const auto is_token = [&session](std::string_view part) {
    return session.Tokenize(part, /*add_special=*/false).size() == 1;
  };
  prompt.form = FormOf(text, is_token, engine.chat_template());
  std::string before;
  try {
    const size_t asking = continues ? 2 : 1;
    if (messages.size() > asking) {
      before = engine.ApplyChatTemplate(messages.first(messages.size() - asking), /*open=*/false,
                                        template_variables, tools);
    }
  } catch (const Error&) {
    // Templates may refuse a conversation that ends there.
  }
  if (text.starts_with(before)) text.erase(0, before.size());
  if (text.size() <= kQuestionTokens * kMaxTokenBytes) {
    prompt.query_tokens = std::clamp(std::ssize(session.Tokenize(text, /*add_special=*/false)),
                                     std::ptrdiff_t{1}, std::ptrdiff_t{kQuestionTokens});
  }
  return prompt;
}

int64_t LastLineTokens(const Session& session, std::string_view text) {
  constexpr int64_t kFew = 1;
  const size_t end = text.find_last_not_of("\r\n");
  if (end == std::string_view::npos) return kFew;
  const size_t before = text.find_last_of('\n', end);
  if (before == std::string_view::npos) return kFew;
  const std::string_view line = text.substr(before + 1);
  if (line.size() > kQuestionTokens * kMaxTokenBytes) return kQuestionTokens;
  return std::clamp<int64_t>(std::ssize(session.Tokenize(line, /*add_special=*/false)), kFew,
                             kQuestionTokens);
}

std::vector<Prompt> PromptsOf(const Engine& engine, const Session& session,
                              const CompletionRequest& request) {
  std::vector<Prompt> prompts;
  const auto add_text = [&](const auto& prompt) {
    if constexpr (std::is_same_v<decltype(prompt), const std::string&>) {
      prompts.push_back(
          {.tokens = session.Tokenize(prompt), .query_tokens = LastLineTokens(session, prompt)});
    } else {
      prompts.push_back({.tokens = prompt});
    }
  };
  if (request.passages) {
    prompts.push_back(PromptWithPassages(engine, session, request));
  } else if (const auto* const messages = std::get_if<std::vector<Message>>(&request.prompt)) {
    prompts.push_back(PromptOf(engine, session, *messages, request.template_variables.dump(),
                               request.tools.list.dump(), request.continues));
  } else if (request.fill) {
    FillIn fill = *request.fill;
    fill.before = std::get<std::string>(request.prompt);
    FillPrompt prompt = session.PromptToFill(fill);
    prompts.push_back({.tokens = std::move(prompt.tokens), .ends = std::move(prompt.ends)});
  } else if (const auto* const tokens = std::get_if<std::vector<int32_t>>(&request.prompt)) {
    add_text(*tokens);
  } else {
    add_text(std::get<std::string>(request.prompt));
  }
  for (const auto& prompt : request.more_prompts) std::visit(add_text, prompt);
  if (request.generate.query_tokens > 0) {
    for (Prompt& prompt : prompts) prompt.query_tokens = request.generate.query_tokens;
  }
  return prompts;
}

std::vector<GenerateResult> GenerateAnswers(
    const Engine& engine, std::span<const int32_t> prompt, GenerateOptions options,
    const SessionOptions& session, int count, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event,
    const BegunAnswers& begun) {
  const Prompt one{.tokens = {prompt.begin(), prompt.end()}, .query_tokens = options.query_tokens};
  return GenerateAnswers(engine, std::span(&one, 1), std::move(options), session, count, cancel,
                         on_event, begun);
}

std::vector<GenerateResult> GenerateAnswers(
    const Engine& engine, std::span<const Prompt> prompts, GenerateOptions options,
    const SessionOptions& session, int count, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event,
    const BegunAnswers& begun) {
  std::vector<Generation> answers;
  const int64_t max_tokens = options.max_tokens;
  for (const Prompt& prompt : prompts) {
    options.query_tokens = prompt.query_tokens;
    for (int i = 0; i < count; ++i) {
      options.sequence = static_cast<uint64_t>(i);
      if (begun) {
        BegunAnswer before = begun(static_cast<int>(answers.size()));
        options.max_tokens = before.ended ? std::ssize(before.tokens) : max_tokens;
        options.begun = std::move(before.tokens);
      }
      answers.push_back(engine.Submit(prompt.tokens, options, session));
    }
  }
  std::vector<bool> done(answers.size());
  double wait_ms = kWaitMs;  // for the first event that comes
  for (size_t left = answers.size(); left > 0;) {
    bool idle = true;
    for (size_t i = 0; i < answers.size(); ++i) {
      if (cancel != nullptr && cancel->cancelled()) answers[i].Cancel();
      if (done[i]) continue;
      const auto event = answers[i].Next(std::exchange(wait_ms, 0));
      if (!event) continue;
      idle = false;
      if (on_event) on_event(static_cast<int>(i), *event);
      done[i] = event->done;
      if (done[i]) --left;
    }
    if (idle) wait_ms = kWaitMs;
  }
  std::vector<GenerateResult> results;
  for (Generation& answer : answers) results.push_back(answer.Wait());
  return results;
}

std::vector<GenerateResult> AnswerRequest(
    const Engine& engine, const Session& session, const SessionOptions& options,
    const CompletionRequest& request, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event,
    const std::function<void(const AnswerForm& form)>& on_form, std::vector<Event>* echoes,
    const std::function<void(std::vector<Prompt>& prompts)>& on_prompts,
    const BegunAnswers& begun) {
  SessionOptions own = options;
  own.kv = request.kv.value_or(own.kv);
  own.prefill = request.prefill.value_or(own.prefill);
  std::optional<Session> own_session;
  if (request.kv || request.prefill) own_session = engine.NewSession(own);
  auto prompts = PromptsOf(engine, own_session ? *own_session : session, request);
  const AnswerForm form = prompts.front().form;  // several prompts are texts, which have no form
  if (on_form) on_form(form);
  if (on_prompts) on_prompts(prompts);
  if (request.echo) {
    return AnswerWithEcho(engine, own, request, prompts, cancel, on_event, echoes, begun);
  }
  GenerateOptions generate = request.generate;
  generate.thought = form.thought;
  generate.spelled_out = MarksOf(form, !request.tools.list.empty());
  for (const std::string& end : prompts.front().ends) {
    generate.stop.push_back(end);
    generate.spelled_out.push_back(end);
  }
  if (request.passages) {
    return {AnswerWithPassages(engine, prompts.front(), request.passages->read_anew,
                               std::move(generate), own, cancel, on_event, begun)};
  }
  return GenerateAnswers(engine, prompts, std::move(generate), own, request.samples, cancel,
                         on_event, begun);
}

}  // namespace godwit::chat
