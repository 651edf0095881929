// The messages of a request, in the shape of OpenAI's API.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "godwit/engine.h"

namespace godwit::chat {

// Parses "messages": [{"role", "content"}]. An assistant's message may have "tool_calls", a tool's
// has its "tool_call_id". The older forms, the role "function" and a "function_call", become the
// newer ones. Throws Error(kInput) for anything else, and for other fields unless lenient. Roles
// are checked by Engine::ApplyChatTemplate.
std::vector<Message> ParseMessages(const nlohmann::ordered_json& value, bool lenient);

// Throws Error(kInput) for a part of a message that is a picture, a sound or a file.
void RefuseMedia(const nlohmann::ordered_json& part);

}  // namespace godwit::chat
