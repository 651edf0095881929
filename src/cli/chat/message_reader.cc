#include "cli/chat/message_reader.h"

#include <string_view>

#include "base/error.h"

namespace godwit::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr const char* kMorePrompt = ". ";

}  // namespace

ChatInputLine ReadMessage(console::LineSource& source, std::string prompt) {
  ChatInputLine message;
  bool quoted = false;
  while (true) {
    console::Line line = source.Read(prompt);
    if (line.kind == console::Line::Kind::kEnd && !message.single) return message;  // unfinished
    if (line.kind != console::Line::Kind::kText) return {.kind = line.kind, .text = line.text};
    std::string_view text = line.text;
    if (message.single && text.starts_with(kQuotes)) {
      quoted = true;
      text.remove_prefix(kQuotes.size());
    }
    bool more = line.pasted;
    if (quoted) {
      const bool closed = text.ends_with(kQuotes);
      if (closed) text.remove_suffix(kQuotes.size());
      more = !closed;
    } else if (text.ends_with('\\')) {
      text.remove_suffix(1);
      more = true;
    }
    message.text += text;
    if (message.text.size() > console::kMaxMessageBytes) {
      Throw(ErrorKind::kInput, "the message has more than {} MiB", console::kMaxMessageBytes >> 20);
    }
    if (!more) {
      // Quoted text is never a command, even on one line.
      message.single = message.single && !quoted;
      return message;
    }
    // The quotes may stand on lines of their own.
    if (!(quoted && message.single && text.empty())) message.text += '\n';
    message.single = false;
    prompt = kMorePrompt;
  }
}

}  // namespace godwit::cli
