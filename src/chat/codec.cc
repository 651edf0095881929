#include "chat/codec.h"

#include <utility>

namespace godwit::chat {

ChatCodec CodecOf(const Engine& engine, std::string variables) {
  return {
      .render = [&engine, variables = std::move(variables)](
                    std::span<const Message> messages,
                    bool open) { return engine.ApplyChatTemplate(messages, open, variables); },
      .encode = [&engine](
                    std::string_view text,
                    int64_t limit_tokens) { return engine.Tokenize(text, false, limit_tokens); },
      .decode = [&engine](std::span<const int32_t> tokens,
                          bool skip_special) { return engine.Detokenize(tokens, skip_special); },
      .chat_template = std::string(engine.chat_template())};
}

}  // namespace godwit::chat
