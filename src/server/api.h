// Api: the server's answers at the paths of OpenAI's and Anthropic's APIs, and at those that
// llama.cpp's server adds. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/stopwatch.h"
#include "chat/completion_request.h"
#include "chat/plans.h"
#include "godwit/engine.h"
#include "journal/folder.h"
#include "server/answer_completion.h"
#include "server/http_server.h"
#include "server/kept_answers.h"
#include "server/metrics.h"
#include "server/models.h"
#include "server/refusals.h"
#include "server/slots.h"
#include "server/workers.h"

namespace godwit::server {

// The outcome of a request, without any of its text.
struct ServedRequest {
  std::string method, path;  // "?" where unknown
  std::string model;         // of several; empty: there is one, or none was chosen
  int status = 0;
  double ms = 0;
  CompletionOutcome completion;  // for a completion
  bool gone = false;             // the client left before the answer's end
  // The error with the paths of files, which the answer leaves out.
  std::string error;
};

struct ApiOptions {
  SessionOptions session;         // of requests that choose none
  int64_t parallel = 1;           // requests of a model that are answered at once
  int64_t queue = 64;             // requests of a model that may wait beyond these
  std::vector<std::string> keys;  // a request needs one of them; empty: none is needed
  // Whether only this machine reaches the server. Without `keys`, a request must then name this
  // machine in its Host.
  bool local = false;
  // The time without progress of running requests, while others wait, after which /ready and
  // /health report a stall.
  double stall_ms = 30'000;
  // Origins whose pages may ask, as in HttpOptions. A request's Host may be one of their names,
  // too.
  std::vector<std::string> origins;
  // How long an answer in events goes on without a reader.
  double grace_ms = 0;
  // Where answers in events are written down, so that they go on in a later process; null: nowhere.
  // It must outlive the Api.
  journal::Folder* journal = nullptr;
  // The time between two comments in a stream that waits for its model.
  double comment_ms = 5000;
  std::function<void(const ServedRequest&)> on_served;  // from any thread
};

// Answers 503, with the time after which to ask again.
void RefuseForNow(HttpReply& reply, std::string_view why);

class Api {
 public:
  // The models must outlive it.
  Api(Models& models, ApiOptions options);

  // Handles a request of HttpServer.
  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply);

  // Goes on with answers in the background that an earlier process has begun.
  void GoOnInBackground();

  // Refuses new requests, and waits for the rest.
  void Drain();

 private:
  struct Route;
  struct Work;
  struct Task;
  // A request on its way to its answer.
  struct Asked {
    std::shared_ptr<const HttpRequest> request;
    std::shared_ptr<HttpReply> reply;
    const Route* route;
    std::string owner;
    ServedRequest served;
    Stopwatch watch = {};
  };
  // The places for requests of one model.
  struct Desk {
    Desk(int64_t parallel, int64_t queue) : slots(parallel), workers(parallel, queue) {}
    Slots slots;
    Workers workers;  // last: they use the others
  };
  static const Route kRoutes[];
  static const Route kAnswerRoutes[];  // of answers by their ids

  static const Route* FindRoute(std::string_view path);
  static const Route* FindAnswerRoute(std::string_view path);
  static void AddAnswerEndpoints(std::vector<Endpoint>& endpoints);
  // The reason to refuse a request from another site's page; empty: there is none.
  std::string_view WhyForeign(const HttpRequest& request) const;
  const std::string* KeyOf(const HttpRequest& request) const;
  void ReportServed(const ServedRequest& served);
  void Refuse(Asked& asked, int status, std::string_view message, Headers headers = {},
              std::string_view code = "");
  void RefuseModel(Asked& asked, std::string_view name);
  // Hands a request to the workers of the model that it names.
  void Choose(Asked asked);
  void Enqueue(Asked asked, size_t model);
  void Finish(Asked asked, size_t model);
  void Run(Asked& asked, size_t model) const;
  // Takes the model for a request, and tells a streaming client while it is loaded. Its reply then
  // takes the place of the request's.
  Models::Use TakeModel(const HttpRequest& request, size_t model,
                        std::shared_ptr<HttpReply>& reply) const;

  // Answers a request for an answer by its id.
  void HandleAnswer(Asked asked);
  void FindInJournal(Asked asked, const std::string& name);
  void TellAnswer(Asked& asked, const std::shared_ptr<KeptAnswer>& kept);
  void RemoveAnswer(Asked& asked, const std::string& name);
  void RefuseAnswer(Asked& asked);
  // Begins an answer in the background, if that is asked for.
  void BeginInBackground(Asked asked);
  // Hands an answer without a client to the workers of its model. False: there are too many.
  bool EnqueueTask(std::shared_ptr<Task> task, size_t model);
  void RunTask(Task& task, size_t model);
  // Ends an answer that was cancelled before its model was there, without text. False: only the
  // model tells how it ends.
  bool EndUnbegun(Task& task, size_t model) const;
  std::shared_ptr<KeptAnswer> KeepAnswer(const chat::CompletionName& name, const std::string& path,
                                         const std::string& owner, int texts, bool background,
                                         bool* is_new) const;

  int64_t CountOf(int64_t (Workers::*count)() const) const;
  std::string StallReason() const;
  // Whether the server or its ranks are ending.
  bool has_ended() const;
  std::string UnknownModel(std::string_view name) const;
  void Health(const Work& work) const;
  void Ready(const Work& work) const;
  nlohmann::ordered_json ModelJson(size_t model) const;
  void ListModels(const Work& work) const;
  void OneModel(const Work& work) const;
  void Props(const Work& work) const;
  void ShowSlots(const Work& work) const;
  void ShowMetrics(const Work& work) const;
  void Complete(const Work& work) const;
  void Respond(const Work& work) const;
  void Message(const Work& work) const;
  void CountTokens(const Work& work) const;
  void MakePlan(const Work& work) const;
  void RequireOwnTexts() const;
  bool PrepareAnswer(const Work& work, const SessionOptions& session,
                     const chat::MessageFor& message_for, chat::CompletionRequest& request) const;
  void FillIn(const Work& work) const;
  void Tokenize(const Work& work) const;
  void Detokenize(const Work& work) const;
  void ApplyTemplate(const Work& work) const;

  // The defaults of a model that was never loaded are not known; its worker parses again.
  chat::CompletionDefaults DefaultsOf(size_t model) const;
  // The message of an error for the client. `served` gets details that others should not know.
  std::string MessageFor(const Error& error, size_t model, ServedRequest& served) const;
  // request: gets what was found before its answer (chat::PrepareRequest). shape_of: makes the
  // shape of the answer that has this name.
  void Answer(
      const Work& work, chat::CompletionRequest& request,
      FunctionRef<std::unique_ptr<AnswerShape>(const chat::CompletionName& name)> shape_of) const;

  Models& models_;
  ApiOptions options_;
  int64_t started_;  // Unix seconds
  std::atomic<bool> draining_ = false;
  mutable std::atomic<int64_t> next_id_ = 0;
  Metrics metrics_;
  mutable KeptAnswers kept_;
  std::vector<std::unique_ptr<Desk>> desks_;  // [models]
  Workers choosers_;  // last: they use the others. They look for the model's name in large bodies
};

}  // namespace godwit::server
