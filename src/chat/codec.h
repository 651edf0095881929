// What a conversation needs of a model that is loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "godwit/engine.h"

namespace godwit::chat {

// Text out of `render` is framed: `encode` adds nothing. A text of more than limit_tokens may end
// early, as Engine::Tokenize has it.
struct ChatCodec {
  std::function<std::string(std::span<const Message>, bool open)> render;  // for the next answer
  std::function<std::vector<int32_t>(std::string_view, int64_t limit_tokens)> encode;
  std::function<std::string(std::span<const int32_t>, bool skip_special)> decode;
};

// In the model's chat template; variables: of Engine::ApplyChatTemplate. The engine must outlive
// it.
ChatCodec CodecOf(const Engine& engine, std::string variables = "{}");

}  // namespace godwit::chat
