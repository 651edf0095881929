// The token ids that begin a text and those that end one.
//
// Plain data; see ReadTokenizerConfig for the files.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/fill_tokens.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"

namespace godwit {

struct SpecialTokens {
  // For information: whether a prompt begins with it is Tokenizer::Encode's business.
  std::optional<int32_t> bos_id;
  // Any of them ends the output; ascending, without repetition. Empty: only a limit ends it.
  std::vector<int32_t> eos_ids;
  // Where the model knows what to do with a hole in a text.
  std::optional<FillTokens> fill = {};
  // Warnings about tokens that the config names and the model cannot have.
  std::vector<std::string> warnings;
};

// Finds the ids of generation_config.json or config.json, and in addition the eos_token of
// tokenizer_config.json. Chat models end a turn with that, and some config files name only the
// token that ended a training document. Tokens that the model cannot generate are left out: those
// that the tokenizer does not have, or whose id is not below vocab_size, the model's. If named ends
// are all left out, a warning says so.
SpecialTokens FindSpecialTokens(const TokenizerConfig& config, const Tokenizer& tokenizer,
                                int64_t vocab_size = int64_t{1} << 31);
// The ids of a model without a tokenizer.
SpecialTokens FindSpecialTokens(const TokenizerConfig& config);

}  // namespace godwit
