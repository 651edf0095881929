// A conversation as a chat template writes it, with nothing of it lost.
#pragma once

#include <span>
#include <string>

#include "godwit/engine.h"
#include "text/chat_template.h"

namespace godwit {

// input: all but the messages. A "developer" is "system" where the template does not name it.
// Throws Error(kInput) for a role that neither OpenAI's API nor the template has. Throws it, too,
// for a message without which the template would write the same. Else throws as
// ChatTemplate::Render.
std::string RenderChat(const ChatTemplate& chat_template, std::span<const Message> messages,
                       ChatInput input);

}  // namespace godwit
