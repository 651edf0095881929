// Reads tokenizer.model, SentencePiece's file: a protobuf of pieces with scores, of how it was
// trained and of how its normalizer treats a text. The few fields that encoding needs are read
// here; a dependency on protobuf would be larger than all of it.
#pragma once

#include <string_view>

#include "text/vocabulary.h"

namespace godwit {

// `bytes` is the content of the file, `what` its name in messages. What frames a text is left open.
// Throws Error(kFormat) with the offset for what is no such file, and Error(kUnsupported) for
// models of words or characters, and for those that write spaces behind words or not at all. Takes
// memory in proportion to the file.
Vocabulary ParseSentencePieceModel(std::string_view bytes, std::string_view what);

}  // namespace godwit
