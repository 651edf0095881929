// Messages of a chat out of lines of input.
//
// A line is a message, unless it ends with a backslash (the next line belongs to it), begins with
// """ (the message ends with the next """ at the end of a line) or its newline was pasted.
#pragma once

#include <string>

#include "console/terminal/line_source.h"

namespace godwit::cli {

struct ChatInputLine {
  console::Line::Kind kind = console::Line::Kind::kText;
  std::string text;
  bool single = true;  // one plain line: may be a command
};

// Throws Error(kInput) for a message of more than kMaxMessageBytes.
// prompt: shown where somebody types the first line.
ChatInputLine ReadMessage(console::LineSource& source, std::string prompt = "> ");

}  // namespace godwit::cli
