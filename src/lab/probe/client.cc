#include "lab/probe/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/json.h"
#include "base/json_found.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "lab/probe/event_reader.h"

namespace godwit::lab::probe {
namespace {

constexpr int kMaxRetries = 40;
constexpr std::chrono::milliseconds kRetryAfter{250};
constexpr size_t kMaxChoices = 16;
constexpr size_t kMaxStreamBytes = size_t{64} << 20;
constexpr size_t kQuotedBytes = 80;

Json ParseAnswer(std::string_view text) {
  if (FirstInvalidUtf8(text)) throw Fault("an answer holds bytes that are no UTF-8");
  try {
    return ParseJson(text, "an answer");
  } catch (const Error& error) {
    throw Fault(fmt::format("an answer is no JSON: {}", Quote(text, kQuotedBytes)));
  }
}

const Json* Find(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

std::string TextOf(const Json& json, const char* name) {
  const Json* text = Find(json, name);
  return text == nullptr ? "" : text->get<std::string>();
}

// A number of tokens or a similar count, so limited that sums of a few cannot overflow.
int64_t CountIn(const Json& json, const char* name) {
  constexpr int64_t kMost = int64_t{1} << 50;
  const Json* count = Find(json, name);
  if (count == nullptr || !count->is_number_integer() || *count < 0 || *count > kMost) {
    throw Fault(fmt::format("{}: expected a count, found {}", Quote(name),
                            count == nullptr ? "nothing" : Found(*count)));
  }
  return count->get<int64_t>();
}

void TakeLogprobs(const Json& logprobs, Choice& choice) {
  const Json* content = Find(logprobs, "content");
  const Json* numbers = Find(logprobs, "token_logprobs");
  if (content == nullptr && numbers == nullptr) return;
  for (const Json& one : content != nullptr ? *content : *numbers) {
    const Json& number = content != nullptr ? one.at("logprob") : one;
    if (!number.is_number()) throw Fault("a log-probability is no number");
    choice.logprobs.push_back(number.get<double>());
  }
}

// Adds a whole answer, or a piece of one, to `answer`: choices are joined by their index.
void Take(const Json& json, Answer& answer, bool streamed) {
  if (const Json* error = Find(json, "error")) {
    throw Fault("an answer became an error: " + Quote(DumpJson(*error), kQuotedBytes));
  }
  if (const Json* usage = Find(json, "usage")) {
    answer.usage = Usage{.prompt_tokens = CountIn(*usage, "prompt_tokens"),
                         .completion_tokens = CountIn(*usage, "completion_tokens"),
                         .total_tokens = CountIn(*usage, "total_tokens")};
  }
  const Json* choices = Find(json, "choices");
  if (choices == nullptr) {
    if (streamed) return;  // usage, or how far a prompt is read
    throw Fault("an answer has no choices");
  }
  for (const Json& choice : *choices) {
    const auto index = static_cast<size_t>(CountIn(choice, "index"));
    if (index >= kMaxChoices) throw Fault(fmt::format("a choice has the index {}", index));
    if (index >= answer.choices.size()) answer.choices.resize(index + 1);
    Choice& taken = answer.choices[index];
    const Json* message = Find(choice, streamed ? "delta" : "message");
    const std::string content =
        message == nullptr ? TextOf(choice, "text") : TextOf(*message, "content");
    const std::string text =
        message == nullptr ? content : TextOf(*message, "reasoning_content") + content;
    taken.text += text;
    taken.content += content;
    if (streamed && index == 0 && !text.empty()) answer.pieces.push_back(text);
    if (const std::string reason = TextOf(choice, "finish_reason"); !reason.empty()) {
      taken.finish_reason = reason;
      ++taken.finish_reasons;
    }
    if (const Json* logprobs = Find(choice, "logprobs")) TakeLogprobs(*logprobs, taken);
  }
}

// Calls action, and turns an answer of an unexpected shape into a Fault.
template <typename Action>
auto OrFault(const Action& action) {
  try {
    return action();
  } catch (const Json::exception& error) {
    throw Fault(fmt::format("an answer has another shape than OpenAI's API: {}", error.what()));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled) throw;
    throw Fault(error.what());
  }
}

std::string RefusalIn(std::string_view body) {
  try {
    const Json json = ParseJson(body, "a refusal");
    const Json* error = Find(json, "error");
    if (error != nullptr && error->is_string()) return error->get<std::string>();
    if (error != nullptr) return TextOf(*error, "message");
    return TextOf(json, "message");
  } catch (const std::exception&) {
    return std::string(FirstCharacters(ReplaceInvalidUtf8(body.substr(0, 1000)), 200));
  }
}

}  // namespace

std::string RefusalOf(const Answer& answer) {
  if (answer.refusal.empty()) return fmt::format("{}", answer.status);
  return fmt::format("{} ({})", answer.status, Quote(answer.refusal, kQuotedBytes));
}

Client::Client(const Target& target)
    : target_(target), http_({.idle_time = target.timeout, .cancel = target.cancel}) {}

HttpResponse Client::Send(const HttpRequest& request, const HttpCallbacks& callbacks) {
  return OrFault([&] {
    for (int retry = 0;; ++retry) {
      HttpResponse response = http_.Send(request, callbacks);
      const bool busy = response.status == 429 || response.status == 503;
      if (!busy || retry == kMaxRetries) return response;
      if (target_.cancel != nullptr) target_.cancel->ThrowIfCancelled();
      std::this_thread::sleep_for(kRetryAfter);
    }
  });
}

HttpResponse Client::Get(const std::string& path) {
  return Send({.url = target_.root + path, .bearer_token = target_.key});
}

HttpRequest Client::Post(const std::string& body) const {
  return {.method = "POST",
          .url = target_.root + (target_.chat ? "/v1/chat/completions" : "/v1/completions"),
          .headers = {{"Content-Type", "application/json"}},
          .bearer_token = target_.key,
          .body = body};
}

HttpResponse Client::PostRaw(const std::string& body) { return Send(Post(body)); }

std::string Client::Body(std::string_view prompt, const Json& fields, bool stream) const {
  Json body = fields;
  body["model"] = target_.model;
  if (stream) {
    body["stream"] = true;
    body["stream_options"]["include_usage"] = true;
  }
  if (!target_.chat) {
    body["prompt"] = prompt;
    return DumpJson(body);
  }
  if (const auto logprobs = body.find("logprobs"); logprobs != body.end()) {
    body["top_logprobs"] = *logprobs;
    *logprobs = true;
  }
  Json message = Json::object();
  message["role"] = "user";
  message["content"] = prompt;
  body["messages"] = Json::array();
  body["messages"].push_back(std::move(message));
  return DumpJson(body);
}

Answer Client::Ask(std::string_view prompt, const Json& fields) {
  const HttpResponse response = PostRaw(Body(prompt, fields, /*stream=*/false));
  Answer answer{.status = response.status};
  if (response.status != 200) {
    answer.refusal = RefusalIn(response.body);
    return answer;
  }
  OrFault([&] { Take(ParseAnswer(response.body), answer, /*streamed=*/false); });
  return answer;
}

Answer Client::Stream(std::string_view prompt, const Json& fields, size_t max_events) {
  Answer answer;
  EventReader reader;
  std::string refusal;
  size_t events = 0, bytes = 0;
  HttpCallbacks callbacks;
  callbacks.on_headers = [&](const HttpResponse& response) {
    answer.status = response.status;
    refusal.clear();
    return response.status != 200 || max_events > 0;
  };
  callbacks.on_body = [&](std::string_view piece) {
    if (answer.status != 200) {
      refusal += piece.substr(0, size_t{1 << 16} - std::min(size_t{1 << 16}, refusal.size()));
      return true;
    }
    bytes += piece.size();
    if (bytes > kMaxStreamBytes) throw Fault("a stream does not end");
    for (const std::string& event : reader.Push(piece)) {
      if (event == "[DONE]") {
        answer.done = true;
      } else {
        OrFault([&] { Take(ParseAnswer(event), answer, /*streamed=*/true); });
      }
      if (++events >= max_events) return false;
    }
    return true;
  };
  Send(Post(Body(prompt, fields, /*stream=*/true)), callbacks);
  if (answer.status != 200) {
    answer.refusal = RefusalIn(refusal);
  } else if (max_events == kToTheEnd && (!answer.done || !reader.is_between_events())) {
    throw Fault("a stream ended without [DONE]");
  }
  return answer;
}

Answer Client::MustAnswer(std::string_view prompt, const Json& fields, bool stream) {
  Answer answer = stream ? Stream(prompt, fields) : Ask(prompt, fields);
  if (answer.status != 200) throw Fault("a plain request is refused: " + RefusalOf(answer));
  const auto wanted = fields.value("n", size_t{1});
  if (answer.choices.size() != wanted) {
    throw Fault(fmt::format("{} choices where {} were asked for{}", answer.choices.size(), wanted,
                            stream ? ", streamed" : ""));
  }
  return answer;
}

}  // namespace godwit::lab::probe
