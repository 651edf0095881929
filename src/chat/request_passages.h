// The passages of a request: "passages": true, beside messages.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace godwit::chat {

// The passages of a chat, which are read once for all prompts (Session::ReadPassages).
struct RequestPassages {
  std::vector<std::string> texts;  // as they stand in their message
  int64_t read_anew = 0;           // tokens of each but the first
};

// Reads a field "passages": true, or {"read_anew": N}. Nothing: it is false. Throws Error(kInput)
// for anything else. The texts are still empty.
std::optional<RequestPassages> ParsePassages(const nlohmann::ordered_json& value);

// The passages of messages in the shape of OpenAI's API. They are parts of the first message of the
// user that has several text parts: all but the last one. Each has the line break behind it that
// joins parts. Throws Error(kInput) if there is no such message.
std::vector<std::string> PassagesIn(const nlohmann::ordered_json& messages);

}  // namespace godwit::chat
