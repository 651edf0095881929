// ChatCodec: the functions of a loaded model that a conversation needs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "godwit/engine.h"

namespace godwit::chat {

// `render` writes the leading tokens, too, so that `encode` adds none. open: an answer follows.
// `encode` may stop early in a text of more than limit_tokens, as Engine::Tokenize does.
struct ChatCodec {
  std::function<std::string(std::span<const Message>, bool open)> render;
  std::function<std::vector<int32_t>(std::string_view, int64_t limit_tokens)> encode;
  std::function<std::string(std::span<const int32_t>, bool skip_special)> decode;
  std::string chat_template = {};  // its source, for FormOf; empty: none
};

// The codec with the model's chat template; variables: as in Engine::ApplyChatTemplate. The engine
// must outlive it.
ChatCodec CodecOf(const Engine& engine, std::string variables = "{}");

}  // namespace godwit::chat
