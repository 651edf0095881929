// Calls as Python writes them, of which the arguments are literals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/answer_pieces.h"

namespace godwit::chat {

// Of names: letters, digits, '_', '-', '.'.
bool IsNameByte(char c);

// name(key="value", other=[1, None]); nothing for anything else.
std::optional<ToolCall> ParsePythonCall(std::string_view text);

// A number, text, True, False, None, or a list, tuple or dict of such, as JSON.
std::optional<std::string> ParsePythonLiteral(std::string_view text);

}  // namespace godwit::chat
