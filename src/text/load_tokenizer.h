// Makes the Tokenizer of a Hugging Face model folder; Hugging Face's own library does the work.
//
// The post-processor of tokenizer.json decides how a prompt is framed (Encode with
// add_special_tokens). Classes of the Llama kind (Llama, CodeLlama, Gemma, Cohere) are an
// exception. Where their tokenizer_config.json says add_bos_token or add_eos_token, that counts.
// LlamaTokenizerFast rebuilds its post-processor from them, and such checkpoints were published
// with a post-processor that adds nothing.
//
// Features of training are switched off: truncation, padding, and dropout, which would make other
// ids in every run.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "text/tokenizer.h"
#include "text/tokenizer_config.h"

namespace godwit {

// Reads the file of FindTokenizerFile (vocabulary_files.h), and those of ReadTokenizerConfig beside
// it. Throws Error(kIo) for an unreadable file and where there is none, Error(kFormat) with file,
// line and column for a broken one, and as ReadVocabulary and TokenizerJson do.
std::unique_ptr<Tokenizer> LoadTokenizer(const std::filesystem::path& folder);

// The content of tokenizer.json, or what another file makes one of. Throws that, but for a broken
// tokenizer.json.
std::string ReadTokenizerFile(const std::filesystem::path& folder);

// Parses `json`, the content of a tokenizer.json; `what` is its name in messages. The library needs
// 120 bytes of memory for a byte of text that it works on. A text is encoded in pieces of up to
// `piece_bytes`, cut where the ids stay the same. A piece is longer only where it cannot be cut.
std::unique_ptr<Tokenizer> ParseTokenizer(std::string_view json, std::string_view what,
                                          const TokenizerConfig& config = {},
                                          size_t piece_bytes = size_t{64} << 10);

}  // namespace godwit
