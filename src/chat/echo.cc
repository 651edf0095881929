#include "chat/echo.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "engine/token_logprobs.h"

namespace godwit::chat {
namespace {

// Cancels the calls of a session while this object lives, once a token is cancelled.
class CancelWith {
 public:
  CancelWith(Session& session, const CancelToken* cancel) {
    if (cancel == nullptr) return;
    thread_ = std::jthread([&session, cancel](const std::stop_token& stop) {
      constexpr std::chrono::milliseconds kEvery{10};
      std::mutex mutex;
      std::condition_variable_any stopped;
      std::unique_lock lock(mutex);
      while (!stopped.wait_for(lock, stop, kEvery, [&] { return stop.stop_requested(); })) {
        // Cancel does nothing between two calls, so it is repeated.
        if (cancel->cancelled()) session.Cancel();
      }
    });
  }

 private:
  std::jthread thread_;
};

std::vector<TokenLogprobs> LogprobsOf(Session& session, std::span<const int32_t> tokens, int top) {
  std::vector<TokenLogprobs> logprobs{{.logprob = kNoLogprob, .top = {}}};
  session.Logits(tokens, [&](int64_t position, std::span<const float> logits) {
    const auto next = static_cast<size_t>(position) + 1;
    if (next < tokens.size()) logprobs.push_back(LogprobRow(logits, top).Of(tokens[next]));
  });
  return logprobs;
}

// An echoed prompt without log-probabilities.
Event EchoOf(const Engine& engine, const CompletionRequest& request, size_t index,
             std::span<const int32_t> tokens) {
  Event echo{.progress = {}, .tokens = {tokens.begin(), tokens.end()}, .logprobs = {}, .text = {}};
  const std::string* text = std::get_if<std::string>(&request.prompt);
  if (index > 0) text = std::get_if<std::string>(&request.more_prompts[index - 1]);
  echo.text = text != nullptr ? *text : engine.Detokenize(tokens);
  return echo;
}

}  // namespace

GenerateResult WithEcho(const Event& echo, const GenerateResult& result) {
  GenerateResult told = result;
  told.text.insert(0, echo.text);
  told.tokens.insert(told.tokens.begin(), echo.tokens.begin(), echo.tokens.end());
  told.logprobs.insert(told.logprobs.begin(), echo.logprobs.begin(), echo.logprobs.end());
  return told;
}

std::vector<GenerateResult> AnswerWithEcho(
    const Engine& engine, const SessionOptions& options, const CompletionRequest& request,
    std::span<const Prompt> prompts, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event, std::vector<Event>* echoes,
    const BegunAnswers& begun) {
  std::vector<Event> all;
  for (size_t i = 0; i < prompts.size(); ++i) {
    all.push_back(EchoOf(engine, request, i, prompts[i].tokens));
  }
  const auto told = [&](int answer, const Event& event) {
    if (on_event) on_event(answer, event);
  };
  std::vector<GenerateResult> results;
  if (request.generate.top_logprobs < 0) {
    std::vector<bool> is_told(request.answers());
    results = GenerateAnswers(
        engine, prompts, request.generate, options, request.samples, cancel,
        [&](int answer, const Event& event) {
          const auto at = static_cast<size_t>(answer);
          if (!is_told[at]) told(answer, all[at / static_cast<size_t>(request.samples)]);
          is_told[at] = true;
          told(answer, event);
        },
        begun);
  } else {
    for (size_t i = 0; i < prompts.size(); ++i) {
      if (cancel != nullptr) cancel->ThrowIfCancelled();
      Session session = engine.NewSession(options);
      const CancelWith cancelling(session, cancel);
      all[i].logprobs = LogprobsOf(session, prompts[i].tokens, request.generate.top_logprobs);
      GenerateOptions generate = request.generate;
      generate.query_tokens = prompts[i].query_tokens;
      for (int k = 0; k < request.samples; ++k) {
        generate.sequence = static_cast<uint64_t>(k);
        results.push_back(session.Generate(prompts[i].tokens, generate));
        const GenerateResult& result = results.back();
        const int answer = static_cast<int>(results.size()) - 1;
        told(answer, all[i]);
        told(answer, {.progress = {},
                      .tokens = result.tokens,
                      .logprobs = result.logprobs,
                      .text = result.text,
                      .done = true});
      }
    }
  }
  if (echoes != nullptr) *echoes = std::move(all);
  return results;
}

}  // namespace godwit::chat
