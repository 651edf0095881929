// Which token ids begin a text and which end one.
//
// Plain data; see ReadTokenizerConfig for the files.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/tokenizer.h"
#include "text/tokenizer_config.h"

namespace godwit {

struct SpecialTokens {
  // For information: whether a prompt begins with it is Tokenizer::Encode's business.
  std::optional<int32_t> bos_id;
  // Any of them ends the output; ascending, without repetition. Empty: only a limit ends it.
  std::vector<int32_t> eos_ids;
};

// The ids of generation_config.json or config.json, and in addition the eos_token of
// tokenizer_config.json: chat models end a turn with it, and some config files name only the token
// that ended a training document. A named token that is not in the vocabulary can never be
// generated and is left out.
SpecialTokens FindSpecialTokens(const TokenizerConfig& config, const Tokenizer& tokenizer);

}  // namespace godwit
