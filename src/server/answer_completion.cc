#include "server/answer_completion.h"

#include <fmt/format.h>

#include <functional>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "chat/answers.h"
#include "server/error_body.h"

namespace godwit::server {
namespace {

// An answer that is sent as server-sent events while the model writes it.
class Stream {
 public:
  Stream(AnswerShape& shape, bool tells_progress, HttpReply& reply)
      : shape_(shape), tells_progress_(tells_progress), reply_(reply) {}

  bool began() const { return began_; }

  void Take(int choice, const Event& event) {
    if (!std::exchange(began_, true)) {
      reply_.Begin("text/event-stream");
      Put(shape_.First());
    }
    if (event.progress && choice == 0) Tell(*event.progress);
    Put(shape_.Of(choice, event));
  }

  void End(const std::string& last) {
    Put(last);
    reply_.End();
  }

 private:
  void Put(const std::string& events) {
    if (!events.empty()) reply_.Write(events);
  }

  // Sends the progress of reading the prompt. A client that did not ask for progress gets a comment
  // now and then, as a sign of life; a proxy between needs one, too.
  void Tell(const PromptProgress& progress) {
    if (tells_progress_) return Put(shape_.Progress(progress));
    constexpr double kEveryMs = 5000;
    if (told_.ms() < kEveryMs) return;
    told_ = Stopwatch();
    reply_.Write(
        fmt::format(": read {} of {} tokens\n\n", progress.done_tokens, progress.total_tokens));
  }

  AnswerShape& shape_;
  bool tells_progress_;
  HttpReply& reply_;
  bool began_ = false;
  Stopwatch told_;
};

// samples: the number of results for each prompt.
CompletionOutcome OutcomeOf(std::span<const GenerateResult> results, int samples) {
  const GenerateResult& first = results.front();
  CompletionOutcome outcome{.first_token_ms = first.prompt_ms};
  for (size_t i = 0; i < results.size(); i += static_cast<size_t>(samples)) {
    outcome.prompt_tokens += results[i].prompt_tokens;
    outcome.cached_tokens += results[i].cached_tokens;
    outcome.disk_tokens += results[i].disk_tokens;
  }
  if (first.tokens.size() > 1) {
    outcome.token_ms = first.predicted_ms / static_cast<double>(first.tokens.size() - 1);
  }
  for (const GenerateResult& result : results) outcome.output_tokens += std::ssize(result.tokens);
  return outcome;
}

}  // namespace

CompletionOutcome AnswerCompletion(const CompletionPlan& plan,
                                   const chat::CompletionRequest& request, AnswerShape& shape,
                                   HttpReply& reply) {
  Stream stream(shape, request.return_progress, reply);
  std::vector<bool> begun(request.answers(), !request.echo);
  const auto on_event = [&](int choice, const Event& event) {
    const bool is_echo = !begun[choice];
    begun[choice] = true;
    if (!is_echo) plan.slot.Take(choice, event);
    if (request.stream) stream.Take(choice, event);
  };
  try {
    std::vector<Event> echoes;
    const auto results = chat::AnswerRequest(
        plan.engine, plan.session, plan.options, request, &reply.gone(), on_event,
        [&](const auto& form) { shape.Begin(form); }, &echoes);
    const CompletionOutcome outcome = OutcomeOf(results, request.samples);
    if (reply.gone().cancelled()) return outcome;
    if (request.stream) {
      stream.End(shape.Last(results));
    } else {
      reply.Send(200, "application/json", shape.Whole(results, echoes));
    }
    return outcome;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled && reply.gone().cancelled()) return {};
    if (!stream.began()) throw;
    stream.End(shape.Failed(StatusOf(error), plan.message_for(error)));
  } catch (const std::bad_alloc&) {
    if (!stream.began()) throw;
    stream.End(shape.Failed(503, "out of memory"));
  }
  return {};
}

}  // namespace godwit::server
