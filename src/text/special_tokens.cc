#include "text/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/quote.h"

namespace godwit {
namespace {

std::optional<int32_t> IdOf(const TokenizerConfig& config, const Tokenizer& tokenizer,
                            const std::string& name, int64_t vocab_size) {
  const auto token = config.named_tokens.find(name);
  if (token == config.named_tokens.end()) return std::nullopt;
  const auto id = tokenizer.TokenToId(token->second);
  return id && *id < vocab_size ? id : std::nullopt;
}

// Warns that no token ends a text. If an id was named, the config's own warning tells which.
void WarnIfNothingEnds(const TokenizerConfig& config, SpecialTokens& tokens) {
  if (!tokens.eos_ids.empty()) return;
  const auto named = config.named_tokens.find("eos_token");
  const bool lost = std::ranges::any_of(config.warnings, [](const std::string& warning) {
    return warning.find("eos_token_id") != warning.npos;
  });
  if (named == config.named_tokens.end() && !lost) return;
  tokens.warnings.push_back(fmt::format(
      "no token ends a text{}: an answer goes on until its limit of tokens or a stop string",
      named == config.named_tokens.end()
          ? ""
          : ", as eos_token " + Quote(named->second) + " is not in the vocabulary"));
}

}  // namespace

SpecialTokens FindSpecialTokens(const TokenizerConfig& config, const Tokenizer& tokenizer,
                                int64_t vocab_size) {
  SpecialTokens tokens{
      .bos_id = config.bos_id, .eos_ids = config.eos_ids, .warnings = config.warnings};
  const std::optional<int32_t> bos = IdOf(config, tokenizer, "bos_token", vocab_size);
  if (!tokens.bos_id) tokens.bos_id = bos;
  const std::optional<int32_t> eos = IdOf(config, tokenizer, "eos_token", vocab_size);
  if (eos) tokens.eos_ids.push_back(*eos);
  std::sort(tokens.eos_ids.begin(), tokens.eos_ids.end());
  const auto end = std::unique(tokens.eos_ids.begin(), tokens.eos_ids.end());
  tokens.eos_ids.erase(end, tokens.eos_ids.end());
  tokens.fill = FindFillTokens(config.fill_ids, tokenizer, tokens.eos_ids, vocab_size);
  WarnIfNothingEnds(config, tokens);
  return tokens;
}

SpecialTokens FindSpecialTokens(const TokenizerConfig& config) {
  return {.bos_id = config.bos_id, .eos_ids = config.eos_ids, .warnings = config.warnings};
}

}  // namespace godwit
