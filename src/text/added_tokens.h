// The tokens that a model folder names beside its vocabulary, in added_tokens_decoder of
// tokenizer_config.json, or where it has none in added_tokens.json. Tokens with a role are those of
// tokenizer_config.json and special_tokens_map.json.
//
// Internal to src/text.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace godwit {

// "bos_token" and its text, for roles of which the folder's files say nothing.
using RoleDefaults = std::vector<std::pair<const char*, std::string_view>>;

// Adds these tokens to `vocabulary` as transformers does. A token with a role is special, one that
// the vocabulary does not have gets the next id. A default that it does not have counts for
// nothing. A role that tokenizer_config.json says is null has no token. Sets bos_id and eos_id
// where there is anything to go by. Throws Error(kFormat) that names the file and the key, and
// Error(kIo).
void AddTokens(const std::filesystem::path& folder, const RoleDefaults& defaults,
               Vocabulary& vocabulary);

}  // namespace godwit
