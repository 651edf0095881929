// Parts of Api that its sources share.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "server/answer_journal.h"
#include "server/api.h"
#include "server/error_body.h"

namespace godwit::server {

inline constexpr const char* kJson = "application/json";
inline constexpr std::string_view kChats = "/v1/chat/completions";
inline constexpr std::string_view kResponses = "/v1/responses";
inline constexpr std::string_view kEnding = "the server is shutting down";
inline constexpr std::string_view kTooMany = "too many requests are waiting: try again later";
inline constexpr std::pair<std::string_view, std::string_view> kLater{"Retry-After", "5"};

// The most values of a text of more than a million tokens, given as numbers.
inline constexpr size_t kMaxValues = 4'000'000;

inline void SendJson(HttpReply& reply, const nlohmann::ordered_json& json) {
  reply.Send(200, kJson, DumpJson(json));
}

inline ErrorWords WordsOf(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorWords::kAnthropic : ErrorWords::kOpenAi;
}

// Tells of a model that is being loaded, at most every `every_ms`, in a comment of a stream: for
// Models::Take.
std::function<void(double progress)> TellOfLoading(
    double every_ms, std::function<void(const std::string& comment)> tell);

// Whether a request asks for its answer in events. It reads the whole body.
bool IsStreamed(const HttpRequest& request);

// An answer that is written without its first client: one in the background, or one of an earlier
// process.
struct Api::Task {
  std::shared_ptr<KeptAnswer> kept;
  JournaledAnswer answer;
  std::unique_ptr<AnswerJournal> journal;  // of a new answer
  bool goes_on = false;                    // of an earlier process
};

struct Api::Work {
  const HttpRequest& request;
  const std::string& owner;
  const std::shared_ptr<HttpReply>& reply;
  ServedRequest& served;
  size_t model;
  const LoadedModel* loaded;  // null: the server's own thread answers, whether it is loaded or not
  Task* task = nullptr;       // null: a client's request

  const Engine& engine() const { return *loaded->engine; }
  const chat::CompletionDefaults& defaults() const { return loaded->limits.defaults; }
};

struct Api::Route {
  std::string_view method;
  std::string_view path;
  void (Api::*answer)(const Work&) const;
  bool open = false;       // also without a key
  bool at_once = false;    // by the server's own thread, regardless of other work
  bool is_answer = false;  // by an answer's id; GET may be DELETE, too
};

}  // namespace godwit::server
