// The keys of a GGUF file that say how a model reads text: the inverse of gguf_tokenizer.h.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/model_folder.h"
#include "weights/gguf_writer.h"

namespace godwit {

// Puts the vocabulary, the tokens that frame and end a text, and the chat template. A GGUF file's
// own keys stay as they are. A model without a tokenizer gets "no_vocab". Returns warnings for the
// user. Throws as VocabularyOf does.
std::vector<std::string> PutTextKeys(const ModelFolder& model, GgufKeys& keys);

}  // namespace godwit
