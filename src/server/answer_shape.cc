#include "server/answer_shape.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/anthropic_json.h"
#include "chat/completion_chunks.h"
#include "chat/infill_json.h"
#include "chat/response_json.h"
#include "chat/result_json.h"
#include "server/error_body.h"

namespace godwit::server {
namespace {

using Json = nlohmann::ordered_json;

std::string DataOf(const Json& json) { return fmt::format("data: {}\n\n", DumpJson(json)); }

class Completion : public AnswerShape {
 public:
  Completion(const chat::CompletionRequest& request, const chat::CompletionName& name,
             chat::TokenTexts& texts)
      : request_(request), name_(name), texts_(texts), chunks_(request, name, texts) {}

  void Begin(const chat::AnswerForm& form) override {
    form_ = form;
    chunks_.Begin(form);
  }
  std::string Whole(std::span<const GenerateResult> results,
                    std::span<const Event> echoes) override {
    Json body = chat::CompletionJson(request_, results, form_, name_, texts_, echoes);
    body["timings"] = chat::TimingsJson(results.front());
    return DumpJson(body);
  }
  std::string First() override {
    std::string events;
    for (int i = 0; i < request_.samples; ++i) events += EventOf(chunks_.First(i));
    return events;
  }
  std::string Of(int choice, const Event& event) override {
    return EventOf(chunks_.Of(choice, event));
  }
  std::string Progress(const PromptProgress& progress) override {
    return EventOf(chunks_.Progress(progress));
  }
  std::string Last(std::span<const GenerateResult> results) override {
    std::string events;
    for (size_t i = 0; i < results.size(); ++i) {
      events += EventOf(chunks_.Last(static_cast<int>(i), results[i]));
    }
    if (request_.include_usage) events += EventOf(chunks_.Usage(results));
    return events + "data: [DONE]\n\n";
  }
  std::string Failed(int status, std::string_view message) override {
    return fmt::format("data: {}\n\n", ErrorBody(status, message));
  }

 private:
  static std::string EventOf(const Json& chunk) { return chunk.is_null() ? "" : DataOf(chunk); }

  const chat::CompletionRequest& request_;
  const chat::CompletionName& name_;
  chat::TokenTexts& texts_;
  chat::AnswerForm form_;
  chat::CompletionChunks chunks_;
};

class Infill : public AnswerShape {
 public:
  Infill(const chat::CompletionRequest& request, const chat::CompletionName& name)
      : request_(request), name_(name) {}

  void Begin(const chat::AnswerForm& /*form*/) override {}
  std::string Whole(std::span<const GenerateResult> results,
                    std::span<const Event> /*echoes*/) override {
    return DumpJson(chat::InfillJson(request_, results.front(), name_, /*is_whole=*/true));
  }
  std::string First() override { return ""; }
  std::string Of(int /*choice*/, const Event& event) override {
    return event.tokens.empty() && event.text.empty() ? ""
                                                      : DataOf(chat::InfillPiece(request_, event));
  }
  std::string Progress(const PromptProgress& progress) override {
    return DataOf({{"prompt_progress", chat::ProgressJson(progress)}});
  }
  std::string Last(std::span<const GenerateResult> results) override {
    return DataOf(chat::InfillJson(request_, results.front(), name_, /*is_whole=*/false));
  }
  std::string Failed(int status, std::string_view message) override {
    return fmt::format("data: {}\n\n", ErrorBody(status, message));
  }

 private:
  const chat::CompletionRequest& request_;
  const chat::CompletionName& name_;
};

// An answer shape whose events have types and come in lists.
template <typename Events>
class TypedEvents : public AnswerShape {
 public:
  TypedEvents(const auto& request, const chat::CompletionName& name) : events_(request, name) {}

  void Begin(const chat::AnswerForm& form) override { events_.Begin(form); }
  std::string Whole(std::span<const GenerateResult> results,
                    std::span<const Event> /*echoes*/) override {
    return DumpJson(events_.Whole(results.front()));
  }
  std::string First() override { return EventsOf(events_.First()); }
  std::string Of(int /*choice*/, const Event& event) override {
    return EventsOf(events_.Of(event));
  }
  std::string Progress(const PromptProgress& progress) override {
    return EventsOf(events_.Progress(progress));
  }
  std::string Last(std::span<const GenerateResult> results) override {
    return EventsOf(events_.Last(results.front()));
  }

 protected:
  static std::string EventsOf(const Json& list) {
    std::string events;
    for (const Json& event : list) {
      events += fmt::format("event: {}\ndata: {}\n\n", event["type"].get_ref<const std::string&>(),
                            DumpJson(event));
    }
    return events;
  }

  Events events_;
};

class Response : public TypedEvents<chat::ResponseEvents> {
 public:
  using TypedEvents::TypedEvents;
  std::string Failed(int /*status*/, std::string_view message) override {
    return EventsOf(events_.Failed(message));
  }
};

class Anthropic : public TypedEvents<chat::AnthropicEvents> {
 public:
  using TypedEvents::TypedEvents;
  std::string Failed(int status, std::string_view message) override {
    return fmt::format("event: error\ndata: {}\n\n",
                       ErrorBody(status, message, "", ErrorWords::kAnthropic));
  }
};

}  // namespace

std::unique_ptr<AnswerShape> CompletionShape(const chat::CompletionRequest& request,
                                             const chat::CompletionName& name,
                                             chat::TokenTexts& texts) {
  return std::make_unique<Completion>(request, name, texts);
}

std::unique_ptr<AnswerShape> ResponseShape(const chat::ResponseRequest& request,
                                           const chat::CompletionName& name) {
  return std::make_unique<Response>(request, name);
}

std::unique_ptr<AnswerShape> InfillShape(const chat::CompletionRequest& request,
                                         const chat::CompletionName& name) {
  return std::make_unique<Infill>(request, name);
}

std::unique_ptr<AnswerShape> AnthropicShape(const chat::CompletionRequest& request,
                                            const chat::CompletionName& name) {
  return std::make_unique<Anthropic>(request, name);
}

}  // namespace godwit::server
