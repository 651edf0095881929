#include "chat/plain_dialogue.h"

#include "chat/codec.h"
#include "text/text_frame.h"

namespace godwit::chat {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr const char* kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

std::string Write(std::span<const Message> messages, bool open) {
  std::string text;
  for (const Message& message : messages) {
    const std::string content(Trim(message.content));
    if (message.role == "system") {
      text += content + "\n\n";
    } else {
      text += (message.role == "user" ? "User: " : "Assistant: ") + content + "\n";
    }
  }
  // No space at the end: for most tokenizers it belongs to the word that follows.
  return open ? text + "Assistant:" : text;
}

}  // namespace

ChatCodec PlainDialogue(const Engine& engine) {
  ChatCodec codec = CodecOf(engine);
  const auto frame = TextFrame([&engine](std::string_view text, bool add_special) {
    return engine.Tokenize(text, add_special);
  });
  codec.render = [begin = engine.Detokenize(frame)](std::span<const Message> messages, bool open) {
    return begin + Write(messages, open);
  };
  return codec;
}

}  // namespace godwit::chat
