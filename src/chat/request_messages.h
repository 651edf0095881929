// The messages of a request, in the shape of OpenAI's API.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "godwit/engine.h"

namespace godwit::chat {

// "messages": [{"role", "content"}], of an assistant with the "tool_calls" that it made, of a tool
// with its "tool_call_id". The older words for these, the role "function" and a "function_call",
// become the newer ones. Throws Error(kInput) for anything else, also for other fields, unless
// lenient. Which roles there are is known to Engine::ApplyChatTemplate.
std::vector<Message> ParseMessages(const nlohmann::ordered_json& value, bool lenient);

// Throws Error(kInput) for a part of a message that is a picture, a sound or a file.
void RefuseMedia(const nlohmann::ordered_json& part);

}  // namespace godwit::chat
