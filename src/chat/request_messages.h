// The messages of a request, in the shape of OpenAI's API.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "godwit/engine.h"

namespace godwit::chat {

// "messages": [{"role", "content"}], of an assistant with the "tool_calls" that it made, of a tool
// with its "tool_call_id". Throws Error(kInput) for anything else, also for other fields, unless
// lenient.
std::vector<Message> ParseMessages(const nlohmann::ordered_json& value, bool lenient);

}  // namespace godwit::chat
