// Requests in the shape of Anthropic's API: the body of /v1/messages or of its count_tokens. They
// are chats in other words.
#pragma once

#include <nlohmann/json.hpp>

#include "chat/completion_request.h"

namespace godwit::chat {

// Parses a request for one answer. The fields of a chat are accepted beside those of this API.
// for_count: only the prompt is asked for, and so "max_tokens" may be missing. Throws as
// ParseCompletionRequest does.
CompletionRequest ParseAnthropicRequest(const nlohmann::ordered_json& body,
                                        const CompletionDefaults& defaults = {},
                                        bool for_count = false);

}  // namespace godwit::chat
