// Translation of tools and their calls from the shape of /v1/responses to that of a chat.
#pragma once

#include <nlohmann/json.hpp>

namespace godwit::chat {

// All functions throw Error(kInput), which names the field and quotes nothing of the value.

// Translates "tools": [{"type": "function", "name", "description", "parameters", "strict"}].
nlohmann::ordered_json ChatToolsOf(const nlohmann::ordered_json& tools);
// Translates "tool_choice": a chat's values, and {"type": "function", "name": "..."}.
nlohmann::ordered_json ChatToolChoiceOf(const nlohmann::ordered_json& choice);

// Translates "input" to messages: a list of messages, function calls of an answer, its reasoning,
// and results of calls.
nlohmann::ordered_json ChatMessagesOf(const nlohmann::ordered_json& items);

}  // namespace godwit::chat
