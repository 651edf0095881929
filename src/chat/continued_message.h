// A conversation whose last message is not whole yet, as its template writes it up to there.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "godwit/engine.h"

namespace godwit::chat {

// Where the model goes on: with continues in the last message, which is then the assistant's, else
// where its answer begins. template_variables, tools: of Engine::ApplyChatTemplate. Throws what
// that throws, and Error(kUnsupported) where the template does not write a last message as it is.
std::string RenderOpen(const Engine& engine, std::span<const Message> messages, bool continues,
                       std::string_view template_variables, std::string_view tools = "[]");

}  // namespace godwit::chat
