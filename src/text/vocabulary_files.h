// The file of a model folder from which its tokenizer comes, and the vocabularies of those that are
// not tokenizer.json.
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

// Reads the vocabulary of a folder without tokenizer.json, and what tokenizer_config.json,
// special_tokens_map.json, added_tokens.json and config.json say beside it. Throws
// Error(kUnsupported) with ConversionCommand for an unknown tokenizer_class, or a tokenizer.model
// that is a list of tiktoken's. Throws Error(kFormat) with the file for a broken one, and
// Error(kIo).
Vocabulary ReadVocabulary(const std::filesystem::path& folder);

}  // namespace godwit
