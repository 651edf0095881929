// A conversation in plain words, for models without a chat template:
//
//   User: Where do godwits fly?
//   Assistant: To New Zealand.
//   User: ...
//
// A model that has read dialogues continues one. It was not trained on this format: expect little.
#pragma once

#include <string_view>

#include "chat/codec.h"

namespace godwit::chat {

// The stop string at which an answer ends.
inline constexpr std::string_view kPlainDialogueStop = "\nUser:";

// The codec of a plain dialogue, with the system message above it. The text begins as the model
// expects any text to begin (a BOS, for most). The engine must outlive it.
ChatCodec PlainDialogue(const Engine& engine);

}  // namespace godwit::chat
