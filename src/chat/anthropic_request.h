// Requests in the shape of Anthropic's API: the body of /v1/messages, or of its count_tokens. They
// are chats in other words.
#pragma once

#include <nlohmann/json.hpp>

#include "chat/completion_request.h"

namespace godwit::chat {

// Of one answer. With the fields that a chat has beside those of this API. for_count: the prompt is
// all that is asked for, so that "max_tokens" may be missing. Throws as ParseCompletionRequest
// does.
CompletionRequest ParseAnthropicRequest(const nlohmann::ordered_json& body,
                                        const CompletionDefaults& defaults = {},
                                        bool for_count = false);

}  // namespace godwit::chat
