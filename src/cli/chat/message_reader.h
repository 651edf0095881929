// Messages of a chat, read from lines of input.
//
// A line is a message, with three exceptions. After a backslash at the end, the next line belongs
// to it, too. A message that begins with """ ends with the next """ at the end of a line. A pasted
// newline does not end a message.
#pragma once

#include <string>

#include "console/terminal/line_source.h"

namespace godwit::cli {

struct ChatInputLine {
  console::Line::Kind kind = console::Line::Kind::kText;
  std::string text;
  bool single = true;  // one plain line: may be a command
};

// Reads a message. Throws Error(kInput) for more than kMaxMessageBytes. prompt: shown where a
// person types the first line.
ChatInputLine ReadMessage(console::LineSource& source, std::string prompt = "> ");

}  // namespace godwit::cli
