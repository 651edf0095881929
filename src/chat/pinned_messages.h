// The policy "sinks:S+W,pin=N" in a chat: a text may be endless, and whole messages stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chat/conversation.h"

namespace godwit::chat {

// Whether the policy keeps only the first and the last tokens of a text.
bool KeepsFirstAndLast(const std::string& spec);

// The spec with N moved to the end of a message (Conversation::MessageEnd), and counting the sink
// token that a session puts in front. Any other spec comes back unchanged. Throws Error(kInput)
// with the numbers if these messages leave no space for a window.
std::string WithPinnedMessages(const std::string& spec, const Conversation& conversation,
                               std::optional<int32_t> sink_token);

}  // namespace godwit::chat
