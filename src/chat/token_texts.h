// What single tokens read as, and how likely they were.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "godwit/engine.h"

namespace godwit::chat {

// Not thread-safe: one for each thread. Remembers the texts that were asked for.
class TokenTexts {
 public:
  explicit TokenTexts(const Engine& engine) : engine_(engine) {}

  // As in the middle of a text, its blanks included; of a token that is part of a character,
  // U+FFFD. Special tokens are spelled out.
  const std::string& Of(int32_t token);

 private:
  const Engine& engine_;
  std::unordered_map<int32_t, std::string> texts_;
};

// For each token of the output, as OpenAI's chats have it: {"token": text, "logprob", "bytes",
// "top_logprobs": [{"token", "logprob", "bytes"}, ...]}; "bytes" is null where U+FFFD stands for
// some. In place of a logprob of -inf, which JSON has not, -9999.
nlohmann::ordered_json LogprobsJson(const GenerateResult& result, TokenTexts& texts);

// The same as OpenAI's text completions have it: {"tokens": [text, ...], "token_logprobs": [...],
// "top_logprobs": [{text: logprob, ...}, ...]}; of a prompt's first token, which has none
// (kNoLogprob), null.
nlohmann::ordered_json LogprobListsJson(const GenerateResult& result, TokenTexts& texts);

}  // namespace godwit::chat
