#include "text/special_tokens.h"

#include <algorithm>
#include <string>

namespace godwit {
namespace {

std::optional<int32_t> IdOf(const TokenizerConfig& config, const Tokenizer& tokenizer,
                            const std::string& name) {
  const auto token = config.named_tokens.find(name);
  if (token == config.named_tokens.end()) return std::nullopt;
  return tokenizer.TokenToId(token->second);
}

}  // namespace

SpecialTokens FindSpecialTokens(const TokenizerConfig& config, const Tokenizer& tokenizer) {
  SpecialTokens tokens{config.bos_id, config.eos_ids};
  const std::optional<int32_t> bos = IdOf(config, tokenizer, "bos_token");
  if (!tokens.bos_id) tokens.bos_id = bos;
  const std::optional<int32_t> eos = IdOf(config, tokenizer, "eos_token");
  if (eos) tokens.eos_ids.push_back(*eos);
  std::sort(tokens.eos_ids.begin(), tokens.eos_ids.end());
  const auto end = std::unique(tokens.eos_ids.begin(), tokens.eos_ids.end());
  tokens.eos_ids.erase(end, tokens.eos_ids.end());
  return tokens;
}

}  // namespace godwit
