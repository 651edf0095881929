// Conversations as files: {"messages": [{"role": "user", "content": "..."}, ...]}, as chat APIs
// have them. How answers were sampled and what was kept of the text is not written.
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

// Other keys beside "messages" are not read. Throws Error(kFormat) that begins with `what` for
// anything that could not be told to the model as it stands: other roles, another order, a message
// with more than text.
SavedConversation ParseConversation(std::string_view json, std::string_view what);

// Throws besides what ReadTextFile does.
SavedConversation ReadConversation(const std::string& path);

}  // namespace godwit::chat
