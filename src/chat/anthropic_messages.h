// Translation of messages and tools from the shape of Anthropic's API to that of a chat.
#pragma once

#include <nlohmann/json.hpp>

namespace godwit::chat {

// All functions throw Error(kInput), which names the field and quotes nothing of the value.
// lenient: unknown fields are ignored.

// Translates "system", a text or blocks of text, and "messages". A message's content is a text or
// blocks: texts, thoughts, tool calls, and tool results.
nlohmann::ordered_json ChatMessagesOfAnthropic(const nlohmann::ordered_json& system,
                                               const nlohmann::ordered_json& messages,
                                               bool lenient);

// Translates "tools": [{"name", "description", "input_schema", "strict"}]. The client itself calls
// them.
nlohmann::ordered_json ChatToolsOfAnthropic(const nlohmann::ordered_json& tools, bool lenient);

}  // namespace godwit::chat
