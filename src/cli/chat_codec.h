// What a conversation needs of a model that is loaded. While a text is rendered or encoded, Ctrl-C
// leaves the program.
#pragma once

#include <string>

#include "cli/conversation.h"

namespace godwit::cli {

// In the model's chat template; variables: of Engine::ApplyChatTemplate. The engine must outlive
// it.
ChatCodec CodecOf(const Engine& engine, std::string variables = "{}");

}  // namespace godwit::cli
