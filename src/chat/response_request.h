// ResponseRequest: the body of /v1/responses, OpenAI's newer API. It is a chat in other words.
// A request cannot continue an earlier one.
#pragma once

#include <nlohmann/json.hpp>

#include "chat/completion_request.h"

namespace godwit::chat {

struct ResponseRequest {
  CompletionRequest completion;  // a chat, of one answer
  bool background = false;       // the answer is written whether anybody reads it or not
  // Fields that the answer repeats.
  nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
  nlohmann::ordered_json tools = nlohmann::ordered_json::array();
  nlohmann::ordered_json tool_choice = "auto";
};

// Parses a request. The fields of a chat are accepted beside those of this API. Throws as
// ParseCompletionRequest does.
ResponseRequest ParseResponseRequest(const nlohmann::ordered_json& body,
                                     const CompletionDefaults& defaults = {});

}  // namespace godwit::chat
