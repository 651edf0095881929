#include "server/answer_completion.h"

#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "chat/answers.h"
#include "chat/completion_chunks.h"
#include "chat/completion_json.h"
#include "chat/result_json.h"
#include "chat/token_texts.h"
#include "server/error_body.h"

namespace godwit::server {
namespace {

using Json = nlohmann::ordered_json;

std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// An answer in events as they come (server-sent events).
class Stream {
 public:
  Stream(const chat::CompletionRequest& request, const chat::CompletionName& name,
         chat::TokenTexts& texts, HttpReply& reply)
      : request_(request), chunks_(request, name, texts), reply_(reply) {}

  bool began() const { return began_; }

  void Take(int choice, const Event& event) {
    if (!std::exchange(began_, true)) {
      reply_.Begin("text/event-stream");
      for (int i = 0; i < request_.samples; ++i) Put(chunks_.First(i));
    }
    if (event.progress && choice == 0) Tell(*event.progress);
    Put(chunks_.Of(choice, event));
  }

  void End(std::span<const GenerateResult> results) {
    for (size_t i = 0; i < results.size(); ++i) Put(chunks_.Last(static_cast<int>(i), results[i]));
    if (request_.include_usage) Put(chunks_.Usage(results));
    reply_.Write("data: [DONE]\n\n");
    reply_.End();
  }

  void Fail(int status, std::string_view message) {
    reply_.Write(fmt::format("data: {}\n\n", ErrorBody(status, message)));
    reply_.End();
  }

 private:
  void Put(const Json& chunk) {
    if (!chunk.is_null()) reply_.Write(fmt::format("data: {}\n\n", TextOf(chunk)));
  }

  // A comment now and then where nobody asked: who waits long, or a proxy between, sees a sign of
  // life.
  void Tell(const PromptProgress& progress) {
    if (request_.return_progress) return Put(chunks_.Progress(progress));
    constexpr double kEveryMs = 5000;
    if (told_.ms() < kEveryMs) return;
    told_ = Stopwatch();
    reply_.Write(
        fmt::format(": read {} of {} tokens\n\n", progress.done_tokens, progress.total_tokens));
  }

  const chat::CompletionRequest& request_;
  chat::CompletionChunks chunks_;
  HttpReply& reply_;
  bool began_ = false;
  Stopwatch told_;
};

CompletionOutcome OutcomeOf(std::span<const GenerateResult> results) {
  const GenerateResult& first = results.front();
  CompletionOutcome outcome{.prompt_tokens = first.prompt_tokens,
                            .cached_tokens = first.cached_tokens,
                            .disk_tokens = first.disk_tokens,
                            .first_token_ms = first.prompt_ms};
  if (first.tokens.size() > 1) {
    outcome.token_ms = first.predicted_ms / static_cast<double>(first.tokens.size() - 1);
  }
  for (const GenerateResult& result : results) outcome.output_tokens += std::ssize(result.tokens);
  return outcome;
}

}  // namespace

CompletionOutcome AnswerCompletion(const CompletionPlan& plan,
                                   const chat::CompletionRequest& request, HttpReply& reply) {
  const chat::CompletionName name{.id = plan.id, .model = plan.model};
  chat::TokenTexts texts(plan.engine);
  Stream stream(request, name, texts, reply);
  const auto on_event = [&](int choice, const Event& event) {
    plan.slot.Take(choice, event);
    if (request.stream) stream.Take(choice, event);
  };
  std::vector<GenerateResult> results;
  try {
    results = chat::AnswerRequest(plan.engine, plan.session, plan.options, request, &reply.gone(),
                                  on_event);
    if (reply.gone().cancelled()) return OutcomeOf(results);
    if (request.stream) {
      stream.End(results);
      return OutcomeOf(results);
    }
  } catch (const Error& error) {
    if (!stream.began()) throw;
    stream.Fail(StatusOf(error), error.what());
    return {};
  } catch (const std::bad_alloc&) {
    if (!stream.began()) throw;
    stream.Fail(503, "out of memory");
    return {};
  }
  Json body = chat::CompletionJson(request, results, name, texts);
  body["timings"] = chat::TimingsJson(results.front());
  reply.Send(200, "application/json", TextOf(body));
  return OutcomeOf(results);
}

}  // namespace godwit::server
