// Answers in the shape of OpenAI's newer API, of /v1/responses: whole, or as the events of a
// stream.
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

// Events, each an object with its "type" and its place among them, in lists: what follows from one
// event of the engine. Beside what OpenAI has, an answer has "seed", "timings", and "kv" as
// CompletionJson has it.
class ResponseEvents {
 public:
  // Both of which must outlive it.
  ResponseEvents(const ResponseRequest& request, const CompletionName& name);

  // How the answer will be written; before all else.
  void Begin(const AnswerForm& form) { reader_.emplace(request_.completion, form); }

  // The answer, in place of events.
  nlohmann::ordered_json Whole(const GenerateResult& result);

  nlohmann::ordered_json First();
  nlohmann::ordered_json Of(const Event& event);
  // {"type": "godwit.prompt_progress", "total", "cache", "processed", "time_ms", "left_ms"}
  nlohmann::ordered_json Progress(const PromptProgress& progress);
  nlohmann::ordered_json Last(const GenerateResult& result);
  // Of an answer that failed: what is wrong.
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
  int64_t created_;
  int64_t next_ = 0;
};

}  // namespace godwit::chat
