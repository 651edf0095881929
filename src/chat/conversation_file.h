// Conversations as files: {"messages": [{"role": "user", "content": "..."}, ...]}, the form of chat
// APIs. Files do not say how answers were sampled or which tokens were kept.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "godwit/engine.h"

namespace godwit::chat {

struct SavedConversation {
  std::optional<std::string> system;
  std::vector<Message> messages;  // questions and answers in turn, an answer last
};

std::string ToJson(const SavedConversation& conversation);

// Parses a conversation. Keys other than "messages" are not read. Throws Error(kFormat) that begins
// with `what` for anything that could not be told to the model unchanged. Examples are other roles,
// another order, and a message with more than text.
SavedConversation ParseConversation(std::string_view json, std::string_view what);

// Reads a file as ParseConversation does. Also throws what ReadTextFile throws.
SavedConversation ReadConversation(const std::string& path);

}  // namespace godwit::chat
