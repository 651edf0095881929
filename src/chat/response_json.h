// ResponseEvents: answers in the shape of OpenAI's newer API, /v1/responses, whole or as a stream
// of events.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_reader.h"
#include "chat/completion_json.h"
#include "chat/response_items.h"
#include "chat/response_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// Lists of events, each an object with its "type" and its sequence number, made from the engine's
// events one by one. "seed", "timings", and "kv" as in CompletionJson are added to OpenAI's fields.
class ResponseEvents {
 public:
  // Both arguments must outlive this object.
  ResponseEvents(const ResponseRequest& request, const CompletionName& name);

  // Sets the form of the answer. To be called first.
  void Begin(const AnswerForm& form) { reader_.emplace(request_.completion, form); }

  // The whole answer, instead of events.
  nlohmann::ordered_json Whole(const GenerateResult& result);

  nlohmann::ordered_json First();
  nlohmann::ordered_json Of(const Event& event);
  // {"type": "godwit.prompt_progress", "total", "cache", "processed", "time_ms", "left_ms"}
  nlohmann::ordered_json Progress(const PromptProgress& progress);
  nlohmann::ordered_json Last(const GenerateResult& result);
  // The events of an answer that failed, with the reason.
  nlohmann::ordered_json Failed(std::string_view message);

 private:
  // type: "response.output_text.delta", ...
  nlohmann::ordered_json Make(std::string_view type, nlohmann::ordered_json fields);
  nlohmann::ordered_json ListOf(std::vector<ResponseEvent> events);
  nlohmann::ordered_json Finished(const GenerateResult& result) const;
  // An answer without text.
  nlohmann::ordered_json Empty(std::string_view status) const;

  const ResponseRequest& request_;
  const CompletionName& name_;
  std::optional<AnswerReader> reader_;
  ResponseItems items_;
  int64_t next_ = 0;
};

}  // namespace godwit::chat
