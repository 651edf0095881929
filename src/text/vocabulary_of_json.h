// The inverse of TokenizerJson: a tokenizer as a Vocabulary, which a GGUF file can say.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace godwit {

// Makes a vocabulary of a tokenizer.json. json: its content, of which `tokenizer` was made; what:
// its name in messages. Takes byte-level BPE, and the BPE of SentencePiece, whose scores follow
// from the order of merges. Ids without a token get names such as [PAD7], up to min_tokens of them.
// `tokens` has all. Vocabulary::added has those for which GGUF has no words. They take in white
// space, stand for whole words only or are looked for in the normalized text.
//
// Files of GGUF name a way to cut texts into words, where tokenizer.json describes it. The known
// one is taken that says the same, or that cuts a text of many scripts, numbers and blanks alike.
// The vocabulary is then made a tokenizer, which has to give the ids of the other. Throws
// Error(kUnsupported) where none does, and for a kind that has no form in GGUF.
Vocabulary VocabularyOf(const Tokenizer& tokenizer, std::string_view json, const std::string& what,
                        int64_t min_tokens);

}  // namespace godwit
