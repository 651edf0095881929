#include "chat/passage_answer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "chat/continued_message.h"
#include "chat/passages.h"

namespace godwit::chat {
namespace {

// Ends the calls of a session once its client has gone or its time is over. The calls wait inside
// for other requests, so another thread looks.
class CallGuard {
 public:
  // timeout_ms: 0: there is no limit.
  CallGuard(Session& session, const CancelToken* cancel, double timeout_ms)
      : session_(session), cancel_(cancel), timeout_ms_(timeout_ms) {
    if (cancel != nullptr || timeout_ms > 0) {
      thread_ = std::jthread([this](const std::stop_token& stop) { Look(stop); });
    }
  }

  bool is_cancelled() const { return cancel_ != nullptr && cancel_->cancelled(); }
  bool is_late() const { return is_late_; }

 private:
  void Look(const std::stop_token& stop) {
    constexpr auto kPoll = std::chrono::milliseconds(10);
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      if (timeout_ms_ > 0 && watch_.ms() >= timeout_ms_) is_late_ = true;
      // Again each time: the session forgets it where a call begins.
      if (is_late_ || is_cancelled()) session_.Cancel();
      stopped_.wait_for(lock, stop, kPoll, [] { return false; });
    }
  }

  Session& session_;
  const CancelToken* const cancel_;
  const double timeout_ms_;
  const Stopwatch watch_;
  std::atomic<bool> is_late_ = false;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // last: it uses the others
};

// The parts of the prompt.
struct Parts {
  std::span<const int32_t> head;
  std::vector<std::vector<int32_t>> passages;
};

Parts PartsOf(const Prompt& prompt) {
  const std::span<const int32_t> tokens(prompt.tokens);
  const auto at = [&](size_t i) { return static_cast<size_t>(prompt.passage_ends[i]); };
  Parts parts{.head = tokens.first(at(0)), .passages = {}};
  for (size_t i = 1; i < prompt.passage_ends.size(); ++i) {
    const auto passage = tokens.subspan(at(i - 1), at(i) - at(i - 1));
    parts.passages.emplace_back(passage.begin(), passage.end());
  }
  return parts;
}

}  // namespace

Prompt PromptWithPassages(const Engine& engine, const Session& session,
                          const CompletionRequest& request) {
  const std::string text =
      RenderOpen(engine, std::get<std::vector<Message>>(request.prompt), request.continues,
                 request.template_variables.dump(), request.tools.list.dump());
  const auto tokenize = [&session](std::string_view part) {
    return session.Tokenize(part, /*add_special=*/false);
  };
  const PassagePrompt cut = CutAtPassages(text, request.passages->texts, tokenize);
  JoinedPassages joined = Join(cut);
  Prompt prompt{.tokens = std::move(joined.tokens), .passage_ends = std::move(joined.ends)};
  prompt.query_tokens = std::clamp<int64_t>(std::ssize(cut.rest), 1, kQuestionTokens);
  prompt.form = FormOf(
      text, [&tokenize](std::string_view part) { return tokenize(part).size() == 1; },
      engine.chat_template());
  return prompt;
}

GenerateResult AnswerWithPassages(
    const Engine& engine, const Prompt& prompt, int64_t read_anew, GenerateOptions generate,
    const SessionOptions& session, const CancelToken* cancel,
    const std::function<void(int answer, const Event& event)>& on_event,
    const BegunAnswers& begun) {
  if (begun) {
    BegunAnswer before = begun(0);
    // The tokens of an ended answer are only spelled out.
    if (before.ended && generate.top_logprobs < 0) {
      return GenerateAnswers(engine, std::span(&prompt, 1), std::move(generate), session,
                             /*count=*/1, cancel, on_event, begun)
          .front();
    }
    if (before.ended) generate.max_tokens = std::ssize(before.tokens);
    generate.begun = std::move(before.tokens);
  }
  generate.query_tokens = prompt.query_tokens;
  generate.sequence = 0;
  const Stopwatch watch;
  const Parts parts = PartsOf(prompt);
  Session text = engine.NewSession(session);
  PassagesRead read;
  const auto tell = [&](Event event) {
    if (event.progress) {
      PromptProgress& progress = *event.progress;
      progress.total_tokens = std::max(progress.total_tokens, std::ssize(prompt.tokens));
      // The session knows all passages when they have been read.
      if (!read.tokens.empty()) progress.cached_tokens = read.cached_tokens;
      progress.elapsed_ms = watch.ms();
    }
    if (cancel != nullptr && cancel->cancelled()) text.Cancel();
    if (on_event) on_event(0, event);
  };
  {
    const CallGuard guard(text, cancel, generate.timeout_ms);
    try {
      read = text.ReadPassages(parts.head, parts.passages, read_anew,
                               [&](const PromptProgress& p) { tell({.progress = p}); });
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCancelled || (!guard.is_cancelled() && !guard.is_late())) {
        throw;
      }
      const Event last{.done = true};
      if (on_event) on_event(0, last);
      return {
          .prompt_tokens = std::ssize(prompt.tokens),
          .finish_reason = guard.is_cancelled() ? FinishReason::kCancelled : FinishReason::kTimeout,
          .prompt_ms = watch.ms()};
    }
  }
  const double read_ms = watch.ms();
  if (generate.timeout_ms > 0) generate.timeout_ms = std::max(1.0, generate.timeout_ms - read_ms);
  const CallGuard guard(text, cancel, /*timeout_ms=*/0);
  generate.on_event = [&](const Event& event) { tell(event); };
  GenerateResult result = text.Generate(prompt.tokens, generate);
  result.read_tokens += std::ssize(read.tokens) - read.cached_tokens + read.anew_tokens;
  result.cached_tokens = read.cached_tokens;
  result.prompt_ms += read_ms;
  return result;
}

}  // namespace godwit::chat
