#include "chat/plain_dialogue.h"

#include "base/split_text.h"
#include "chat/codec.h"
#include "text/leading_tokens.h"

namespace godwit::chat {
namespace {

std::string Write(std::span<const Message> messages, bool open) {
  std::string text;
  for (const Message& message : messages) {
    const std::string content(Stripped(message.content));
    if (message.role == "system") {
      text += content + "\n\n";
    } else {
      text += (message.role == "user" ? "User: " : "Assistant: ") + content + "\n";
    }
  }
  // No space at the end: for most tokenizers it belongs to the next word.
  return open ? text + "Assistant:" : text;
}

}  // namespace

ChatCodec PlainDialogue(const Engine& engine) {
  ChatCodec codec = CodecOf(engine);
  const auto frame = LeadingTokens([&engine](std::string_view text, bool add_special) {
    return engine.Tokenize(text, add_special);
  });
  codec.render = [begin = engine.Detokenize(frame)](std::span<const Message> messages, bool open) {
    return begin + Write(messages, open);
  };
  return codec;
}

}  // namespace godwit::chat
