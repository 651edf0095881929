// The text of a conversation up to its unfinished last message, as the template writes it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "godwit/engine.h"

namespace godwit::chat {

// The text behind which the model goes on. continues: the model goes on with the last message,
// which is the assistant's; else it begins an answer. template_variables, tools: as in
// Engine::ApplyChatTemplate. Throws what that throws, and Error(kUnsupported) where the template
// does not write a last message as it is.
std::string RenderOpen(const Engine& engine, std::span<const Message> messages, bool continues,
                       std::string_view template_variables, std::string_view tools = "[]");

}  // namespace godwit::chat
