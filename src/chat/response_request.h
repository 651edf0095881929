// What a client asks of a model by OpenAI's newer API: the body of /v1/responses. It is a chat in
// other words; nothing is stored, so that it cannot go on from an earlier one.
#pragma once

#include <nlohmann/json.hpp>

#include "chat/completion_request.h"

namespace godwit::chat {

struct ResponseRequest {
  CompletionRequest completion;  // a chat, of one answer
  // What comes back with the answer.
  nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
  nlohmann::ordered_json tools = nlohmann::ordered_json::array();
  nlohmann::ordered_json tool_choice = "auto";
};

// With the fields that a chat has beside those of this API. Throws as ParseCompletionRequest does.
ResponseRequest ParseResponseRequest(const nlohmann::ordered_json& body,
                                     const CompletionDefaults& defaults = {});

}  // namespace godwit::chat
