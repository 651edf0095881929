// The keys of a GGUF file that say how a model reads text: the inverse of gguf_tokenizer.h.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/model_folder.h"
#include "weights/gguf_writer.h"

namespace godwit {

// Vocabulary, the tokens that frame and end a text, the chat template. Of a GGUF file, its own keys
// as they are. Without a tokenizer that is said ("no_vocab"). Returns what the user should know, if
// anything. Throws as VocabularyOf does.
std::vector<std::string> PutTextKeys(const ModelFolder& model, GgufKeys& keys);

}  // namespace godwit
