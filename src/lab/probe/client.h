// Client: sends the requests of a check and reads the answers. An answer that does not have the
// shape of OpenAI's API is a fault of the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "http/client.h"

namespace godwit::lab::probe {

using Json = nlohmann::json;

// Fault and Skip end a check. Neither is an error of ours.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class Skip : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Target {
  std::string root;  // "http://host:8080", to which paths are added
  std::string model;
  std::string key;  // empty: none
  std::chrono::milliseconds timeout{60'000};
  int clients = 8;                        // clients that ask at once
  bool chat = false;                      // messages are answered; else texts are continued
  std::optional<int64_t> context_tokens;  // as the server says
  const CancelToken* cancel = nullptr;
};

struct Choice {
  std::string text;     // with the thought before it,
  std::string content;  // and without
  std::string finish_reason;
  int finish_reasons = 0;  // pieces that had one
  std::vector<double> logprobs;
};

struct Usage {
  int64_t prompt_tokens = 0, completion_tokens = 0, total_tokens = 0;
  bool operator==(const Usage&) const = default;
};

struct Answer {
  int status = 0;
  std::string refusal;  // if the status is not 200
  std::vector<Choice> choices;
  std::optional<Usage> usage;
  std::vector<std::string> pieces;  // of the first choice, if it was streamed
  bool done = false;                // the stream said that it has ended

  const std::string& text() const { return choices.at(0).text; }
};

// "400 (no such field)".
std::string RefusalOf(const Answer& answer);

// Sends one request at a time. All functions throw Error(kCancelled), and Fault if no answer comes.
// A busy server (429, 503) is asked again for a while.
class Client {
 public:
  static constexpr size_t kToTheEnd = SIZE_MAX;

  explicit Client(const Target& target);

  HttpResponse Get(const std::string& path);
  // Sends any body, also one that is not JSON, to the path for prompts.
  HttpResponse PostRaw(const std::string& body);

  // fields: the request's, except prompt and model. "logprobs" is the number of likeliest tokens,
  // also for a chat.
  Answer Ask(std::string_view prompt, const Json& fields);
  // max_events: the events after which the connection is cut.
  Answer Stream(std::string_view prompt, const Json& fields, size_t max_events = kToTheEnd);
  // An answer with each of its n choices, by Ask or Stream; anything else is a Fault.
  Answer MustAnswer(std::string_view prompt, const Json& fields, bool stream = false);

 private:
  std::string Body(std::string_view prompt, const Json& fields, bool stream) const;
  HttpResponse Send(const HttpRequest& request, const HttpCallbacks& callbacks = {});
  HttpRequest Post(const std::string& body) const;

  const Target& target_;
  HttpClient http_;
};

}  // namespace godwit::lab::probe
