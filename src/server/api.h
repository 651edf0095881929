// What the server answers: the paths of OpenAI's API, and those that llama.cpp's server adds to it.
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

// What a request came to; nothing of what it said.
struct ServedRequest {
  std::string method, path;  // of those that are known, else "?"
  int status = 0;
  double ms = 0;
  CompletionOutcome completion;  // where it was one
  bool gone = false;             // nobody read the answer to its end
  // The error with the places of files, where the answer has left them out.
  std::string error;
};

// What can be told of a model, beside what its engine knows.
struct ModelAbout {
  std::string family;  // "llama"
  std::string format;  // of its files: "gguf", "safetensors"
  int64_t parameters = 0;
  std::vector<std::string> stored_as;  // types of its tensors, the most frequent first
  // In memory: weights, and keys and values.
  std::string loaded_as, kv_type;
};

struct ApiOptions {
  std::string model;        // the name that stands in answers
  std::string model_place;  // its folder or file, which they leave out
  ModelAbout about;
  chat::CompletionDefaults defaults;
  SessionOptions session;
  int64_t parallel = 1;           // requests that are answered at once,
  int64_t queue = 64;             // and that wait beyond these
  std::vector<std::string> keys;  // one of which a request must have; none: anybody may ask
  // Nobody but this machine reaches it: who has no key must call it by a name of this machine.
  bool local = false;
  // Where others wait, and nothing has come of those that are answered for so long, requests do not
  // get through: /ready and /health say so.
  double stall_ms = 30'000;
  // Whose pages may ask, as HttpOptions has them: by the names in these it may be called, too.
  std::vector<std::string> origins;
  std::function<void(const ServedRequest&)> on_served;  // from any thread
};

// 503, and when to come back.
void RefuseForNow(HttpReply& reply, std::string_view why);

// Thread-safe.
class Api {
 public:
  // The engine must outlive it.
  Api(const Engine& engine, ApiOptions options);

  // HttpServer's handler.
  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply);

  // Refuses what comes from now on, and waits for the rest.
  void Drain();

 private:
  struct Route;
  struct Work;
  static const Route kRoutes[];

  static const Route* FindRoute(std::string_view path);
  // Why a page of another site may not ask; empty: it is none.
  std::string_view WhyForeign(const HttpRequest& request) const;
  const std::string* KeyOf(const HttpRequest& request) const;
  void Tell(const ServedRequest& served);
  void Run(const Route& route, const HttpRequest& request, const std::string& owner,
           HttpReply& reply, ServedRequest& served) const;

  std::string StallOf() const;
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

  // What is said of an error; with more of it in `served` than others should know.
  std::string MessageFor(const Error& error, ServedRequest& served) const;
  // shape_of: the words of the answer that has this name.
  void Answer(
      const Work& work, const chat::CompletionRequest& request,
      FunctionRef<std::unique_ptr<AnswerShape>(const chat::CompletionName& name)> shape_of) const;

  const Engine& engine_;
  ApiOptions options_;
  Session session_;  // to make tokens with
  int64_t started_;  // Unix seconds
  bool has_template_;
  std::atomic<bool> draining_ = false;
  mutable std::atomic<int64_t> next_id_ = 0;
  Metrics metrics_;
  mutable Slots slots_;
  Workers workers_;  // last: they use the others
};

}  // namespace godwit::server
