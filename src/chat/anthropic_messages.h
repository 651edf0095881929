// Messages and tools in the shape of Anthropic's API, in that of a chat.
#pragma once

#include <nlohmann/json.hpp>

namespace godwit::chat {

// All throw Error(kInput), which names the field and quotes nothing of what was found. lenient:
// fields that are not known are passed over.

// "system": a text, or blocks of text; and "messages", whose content is a text or blocks: texts,
// thoughts, calls of tools, and what came of them.
nlohmann::ordered_json ChatMessagesOfAnthropic(const nlohmann::ordered_json& system,
                                               const nlohmann::ordered_json& messages,
                                               bool lenient);

// "tools": [{"name", "description", "input_schema", "strict"}], which the client calls itself.
nlohmann::ordered_json ChatToolsOfAnthropic(const nlohmann::ordered_json& tools, bool lenient);

}  // namespace godwit::chat
