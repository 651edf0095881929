// Token counts of several texts, shown before the texts are read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "console/options/input_files.h"

namespace godwit::cli {

struct FileTokens {
  std::string name;
  int64_t tokens = 0;
  bool or_more = false;  // the text was not counted to its end
};

// Counts the tokens of each text by itself. A text with far more than `limit_tokens` is not counted
// to its end. encode: as Engine::Tokenize, without leading tokens.
std::vector<FileTokens> CountTokens(
    std::span<const console::NamedText> texts, int64_t limit_tokens,
    FunctionRef<std::vector<int32_t>(std::string_view text, int64_t limit_tokens)> encode);

// "a.txt: 12 tokens, b.txt: 4096 tokens, and 3 more files: 90 tokens; together 4198 tokens"
std::string Describe(std::span<const FileTokens> files);

}  // namespace godwit::cli
