// Answers in the shape of OpenAI's newer API, of /v1/responses: whole, or as the events of a
// stream.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "chat/completion_json.h"
#include "chat/response_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// Beside what OpenAI has: "seed", "timings", and "kv" as CompletionJson has it.
nlohmann::ordered_json ResponseJson(const ResponseRequest& request, const GenerateResult& result,
                                    const CompletionName& name);

// Events, each an object with its "type" and its place among them, in lists: what follows from one
// event of the engine.
class ResponseEvents {
 public:
  // Both of which must outlive it.
  ResponseEvents(const ResponseRequest& request, const CompletionName& name);

  nlohmann::ordered_json First();
  nlohmann::ordered_json Of(const Event& event);
  // {"type": "godwit.prompt_progress", "total", "cache", "processed", "time_ms"}
  nlohmann::ordered_json Progress(const PromptProgress& progress);
  nlohmann::ordered_json Last(const GenerateResult& result);
  // Of an answer that failed: what is wrong.
  nlohmann::ordered_json Failed(std::string_view message);

 private:
  // type: "response.output_text.delta", ...
  nlohmann::ordered_json Make(std::string_view type, nlohmann::ordered_json fields);
  // The same, of the one part of the one message that an answer has.
  nlohmann::ordered_json MakeOfPart(std::string_view type, const nlohmann::ordered_json& fields);
  // An answer without text.
  nlohmann::ordered_json Empty(std::string_view status) const;

  const ResponseRequest& request_;
  const CompletionName& name_;
  int64_t created_;
  int64_t next_ = 0;
};

}  // namespace godwit::chat
