// Calls in Python's syntax, with literals as arguments.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/answer_pieces.h"

namespace godwit::chat {

// Whether a byte may stand in a name: letters, digits, '_', '-', '.'.
bool IsNameByte(char c);

// Parses name(key="value", other=[1, None]). Nullopt for anything else.
std::optional<ToolCall> ParsePythonCall(std::string_view text);

// The JSON of a number, text, True, False, None, or a list, tuple or dict of such.
std::optional<std::string> ParsePythonLiteral(std::string_view text);

}  // namespace godwit::chat
