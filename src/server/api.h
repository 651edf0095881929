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
#include "chat/completion_request.h"
#include "godwit/engine.h"
#include "server/answer_completion.h"
#include "server/http_server.h"
#include "server/metrics.h"
#include "server/slots.h"
#include "server/workers.h"

namespace godwit::server {

// The outcome of a request, without any of its text.
struct ServedRequest {
  std::string method, path;  // "?" where unknown
  int status = 0;
  double ms = 0;
  CompletionOutcome completion;  // for a completion
  bool gone = false;             // the client left before the answer's end
  // The error with the paths of files, which the answer leaves out.
  std::string error;
};

// Facts about a model that its engine does not know.
struct ModelAbout {
  std::string family;  // "llama"
  std::string format;  // the files' format: "gguf", "safetensors"
  int64_t parameters = 0;
  std::vector<std::string> stored_as;  // types of its tensors, the most frequent first
  // Types in memory: of weights, and of keys and values.
  std::string loaded_as, kv_type;
};

struct ApiOptions {
  std::string model;        // the name that stands in answers
  std::string model_place;  // its folder or file, which answers leave out
  ModelAbout about;
  chat::CompletionDefaults defaults;
  SessionOptions session;
  int64_t parallel = 1;           // requests that are answered at once
  int64_t queue = 64;             // requests that may wait beyond these
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
  std::function<void(const ServedRequest&)> on_served;  // from any thread
};

// Answers 503, with the time after which to ask again.
void RefuseForNow(HttpReply& reply, std::string_view why);

class Api {
 public:
  // The engine must outlive it.
  Api(const Engine& engine, ApiOptions options);

  // Handles a request of HttpServer.
  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply);

  // Refuses new requests, and waits for the rest.
  void Drain();

 private:
  struct Route;
  struct Work;
  static const Route kRoutes[];

  static const Route* FindRoute(std::string_view path);
  // The reason to refuse a request from another site's page; empty: there is none.
  std::string_view WhyForeign(const HttpRequest& request) const;
  const std::string* KeyOf(const HttpRequest& request) const;
  void ReportServed(const ServedRequest& served);
  void Run(const Route& route, const HttpRequest& request, const std::string& owner,
           HttpReply& reply, ServedRequest& served) const;

  std::string StallReason() const;
  void Health(const Work& work) const;
  void Ready(const Work& work) const;
  nlohmann::ordered_json ModelJson() const;
  void Models(const Work& work) const;
  void OneModel(const Work& work) const;
  void Props(const Work& work) const;
  void ShowSlots(const Work& work) const;
  void ShowMetrics(const Work& work) const;
  void Complete(const Work& work) const;
  void Respond(const Work& work) const;
  void Message(const Work& work) const;
  void CountTokens(const Work& work) const;
  void FillIn(const Work& work) const;
  void Tokenize(const Work& work) const;
  void Detokenize(const Work& work) const;
  void ApplyTemplate(const Work& work) const;

  // The message of an error for the client. `served` gets details that others should not know.
  std::string MessageFor(const Error& error, ServedRequest& served) const;
  // shape_of: makes the shape of the answer that has this name.
  void Answer(
      const Work& work, const chat::CompletionRequest& request,
      FunctionRef<std::unique_ptr<AnswerShape>(const chat::CompletionName& name)> shape_of) const;

  const Engine& engine_;
  ApiOptions options_;
  Session session_;  // tokenizes
  int64_t started_;  // Unix seconds
  bool has_template_;
  std::atomic<bool> draining_ = false;
  mutable std::atomic<int64_t> next_id_ = 0;
  Metrics metrics_;
  mutable Slots slots_;
  Workers workers_;  // last: they use the others
};

}  // namespace godwit::server
