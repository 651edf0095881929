// Which file of a model folder its tokenizer comes from, and the vocabularies of those that are not
// tokenizer.json.
//
// They are read as published files of tokenizer.json have it. transformers 5 differs from these
// here and there; docs/tokenizers.md says where.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "text/vocabulary.h"

namespace godwit {

// For messages: what FindTokenizerFile looks for.
inline constexpr char kTokenizerFiles[] =
    "tokenizer.json, tokenizer.model, or vocab.json with merges.txt";

// "tokenizer.json", else "tokenizer.model", else "vocab.json"; nullopt where there is none.
std::optional<std::string> FindTokenizerFile(const std::filesystem::path& folder);

// A command that makes a tokenizer.json of whatever transformers can read.
std::string ConversionCommand(const std::filesystem::path& folder);

// Of a folder with one of the other two, and of what tokenizer_config.json,
// special_tokens_map.json, added_tokens.json and config.json say beside it. Throws
// Error(kUnsupported) with that command where they are of a tokenizer_class that is not known, or
// tokenizer.model is a list of tiktoken's; Error(kFormat) with the file for a broken one, and
// Error(kIo).
Vocabulary ReadVocabulary(const std::filesystem::path& folder);

}  // namespace godwit
