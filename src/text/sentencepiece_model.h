// Reads tokenizer.model, SentencePiece's file: a protobuf of pieces with scores, of how it was
// trained and of how its normalizer treats a text. The few fields that encoding needs are read
// here; a dependency on protobuf would be larger than all of it.
#pragma once

#include <string_view>

#include "text/vocabulary.h"

namespace godwit {

// Parses `bytes`, the content of the file; `what` is its name in messages. The frame of a text is
// left open. Throws Error(kFormat) with the offset for bytes that are no such file. Throws
// Error(kUnsupported) for models of words or characters, and for those that write spaces behind
// words or not at all. Takes memory in proportion to the file.
Vocabulary ParseSentencePieceModel(std::string_view bytes, std::string_view what);

}  // namespace godwit
