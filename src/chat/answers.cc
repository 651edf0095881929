#include "chat/answers.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace godwit::chat {
namespace {

// How long one of them is waited for when none had anything, and how soon a cancelled token is
// noticed: short beside the time in which an answer that nobody reads is held up.
constexpr double kWaitMs = 10;

}  // namespace

Prompt PromptOf(const Engine& engine, const Session& session, std::span<const Message> messages,
                std::string_view template_variables, std::string_view tools) {
  std::string text = engine.ApplyChatTemplate(messages, /*open=*/true, template_variables, tools);
  Prompt prompt{.tokens = session.Tokenize(text, /*add_special=*/false),
                .query_tokens = kQuestionTokens};
  std::string before;
  try {
    if (messages.size() > 1) {
      before = engine.ApplyChatTemplate(messages.first(messages.size() - 1), /*open=*/false,
                                        template_variables, tools);
    }
  } catch (const Error&) {
    // Templates may refuse a conversation that ends there.
  }
  if (text.starts_with(before)) text.erase(0, before.size());
  constexpr size_t kMostBytes = 64;  // of a token, as good as always
  if (text.size() <= kQuestionTokens * kMostBytes) {
    prompt.query_tokens = std::clamp(std::ssize(session.Tokenize(text, /*add_special=*/false)),
                                     std::ptrdiff_t{1}, std::ptrdiff_t{kQuestionTokens});
  }
  return prompt;
}

Prompt PromptOf(const Engine& engine, const Session& session, const CompletionRequest& request) {
  Prompt prompt;
  if (const auto* tokens = std::get_if<std::vector<int32_t>>(&request.prompt)) {
    prompt.tokens = *tokens;
  } else if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    prompt.tokens = session.Tokenize(*text);
  } else {
    prompt = PromptOf(engine, session, std::get<std::vector<Message>>(request.prompt),
                      request.template_variables.dump(), request.tools.list.dump());
  }
  if (request.generate.query_tokens > 0) prompt.query_tokens = request.generate.query_tokens;
  return prompt;
}

std::vector<GenerateResult> GenerateAnswers(
    const Engine& engine, std::span<const int32_t> prompt, GenerateOptions options,
    const SessionOptions& session, int count, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event) {
  std::vector<Generation> answers;
  for (int i = 0; i < count; ++i) {
    options.sequence = static_cast<uint64_t>(i);
    answers.push_back(engine.Submit(prompt, options, session));
  }
  std::vector<bool> done(answers.size());
  double wait_ms = kWaitMs;  // for the first that comes
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
    const std::function<void(int answer, const Event& event)>& on_event) {
  SessionOptions own = options;
  own.kv = request.kv.value_or(own.kv);
  own.prefill = request.prefill.value_or(own.prefill);
  std::optional<Session> own_session;
  if (request.kv || request.prefill) own_session = engine.NewSession(own);
  const Prompt prompt = PromptOf(engine, own_session ? *own_session : session, request);
  GenerateOptions generate = request.generate;
  generate.query_tokens = prompt.query_tokens;
  return GenerateAnswers(engine, prompt.tokens, std::move(generate), own, request.samples, cancel,
                         on_event);
}

}  // namespace godwit::chat
