// Texts of single tokens, and their log-probabilities as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "godwit/engine.h"

namespace godwit::chat {

// TokenTexts: remembers the texts that were asked for. Not thread-safe: one for each thread.
class TokenTexts {
 public:
  explicit TokenTexts(const Engine& engine) : engine_(engine) {}

  // The token's text as in the middle of a text, with its blanks. A token that is part of a
  // character reads U+FFFD. Special tokens are spelled out.
  const std::string& Of(int32_t token);

 private:
  const Engine& engine_;
  std::unordered_map<int32_t, std::string> texts_;
};

// An entry for each token of the output, as in OpenAI's chats: {"token": text, "logprob", "bytes",
// "top_logprobs": [{"token", "logprob", "bytes"}, ...]}. "bytes" is null where the text has U+FFFD.
// -9999 replaces a logprob of -inf, which JSON lacks.
nlohmann::ordered_json LogprobsJson(const GenerateResult& result, TokenTexts& texts);

// LogprobsJson in the form of OpenAI's text completions: {"tokens": [text, ...], "token_logprobs":
// [...], "top_logprobs": [{text: logprob, ...}, ...]}. Null for a prompt's first token, which has
// no log-probability (kNoLogprob).
nlohmann::ordered_json LogprobListsJson(const GenerateResult& result, TokenTexts& texts);

}  // namespace godwit::chat
