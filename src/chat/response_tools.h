// Tools and their calls in the shape of /v1/responses, in that of a chat.
#pragma once

#include <nlohmann/json.hpp>

namespace godwit::chat {

// All throw Error(kInput), which names the field and quotes nothing of what was found.

// "tools": [{"type": "function", "name", "description", "parameters", "strict"}].
nlohmann::ordered_json ChatToolsOf(const nlohmann::ordered_json& tools);
// "tool_choice": what a chat has, and {"type": "function", "name": "..."}.
nlohmann::ordered_json ChatToolChoiceOf(const nlohmann::ordered_json& choice);

// "input": a list of messages, of an answer's calls of functions and its reasoning, and of what
// came of the calls: as messages.
nlohmann::ordered_json ChatMessagesOf(const nlohmann::ordered_json& items);

}  // namespace godwit::chat
