// A conversation in plain words, for models without a chat template:
//
//   User: Where do godwits fly?
//   Assistant: To New Zealand.
//   User: ...
//
// A model that has read dialogues goes on with one. Nothing was trained on this frame: expect
// little.
#pragma once

#include <string_view>

#include "chat/codec.h"

namespace godwit::chat {

// Where an answer ends: a stop string to generate with.
inline constexpr std::string_view kPlainDialogueStop = "\nUser:";

// The system message stands above the dialogue. The text begins as the model expects any text to
// begin (a BOS, for most). The engine must outlive it.
ChatCodec PlainDialogue(const Engine& engine);

}  // namespace godwit::chat
