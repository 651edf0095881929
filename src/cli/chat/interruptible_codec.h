// A conversation's codec at a terminal: while a text is rendered or encoded, Ctrl-C leaves the
// program.
#pragma once

#include "chat/codec.h"

namespace godwit::cli {

// A template or a tokenizer that computes without end has nothing that could be kept.
chat::ChatCodec Interruptible(chat::ChatCodec codec);

}  // namespace godwit::cli
