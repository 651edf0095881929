#include "chat/token_texts.h"

#include <array>
#include <cmath>

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

float Finite(float logprob) { return std::isfinite(logprob) ? logprob : -9999.0f; }

Json Bytes(const std::string& text) {
  if (text.find("\uFFFD") != text.npos) return nullptr;
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
  return bytes;
}

Json Entry(const TokenLogprob& one, TokenTexts& texts) {
  const std::string& text = texts.Of(one.token);
  return {{"token", text}, {"logprob", Finite(one.logprob)}, {"bytes", Bytes(text)}};
}

}  // namespace

const std::string& TokenTexts::Of(int32_t token) {
  const auto [found, is_new] = texts_.try_emplace(token);
  if (is_new) {
    // Some decoders strip a leading blank, so the token's text is that of the second of two.
    const std::string one = engine_.Detokenize(std::array{token});
    const std::string two = engine_.Detokenize(std::array{token, token});
    found->second = two.starts_with(one) ? two.substr(one.size()) : one;
  }
  return found->second;
}

Json LogprobsJson(const GenerateResult& result, TokenTexts& texts) {
  Json list = Json::array();
  for (size_t i = 0; i < result.logprobs.size(); ++i) {
    const TokenLogprobs& chosen = result.logprobs[i];
    Json entry = Entry({.token = result.tokens[i], .logprob = chosen.logprob}, texts);
    entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& one : chosen.top) entry["top_logprobs"].push_back(Entry(one, texts));
    list.push_back(std::move(entry));
  }
  return list;
}

Json LogprobListsJson(const GenerateResult& result, TokenTexts& texts) {
  Json tokens = Json::array(), logprobs = Json::array(), tops = Json::array();
  for (size_t i = 0; i < result.logprobs.size(); ++i) {
    tokens.push_back(texts.Of(result.tokens[i]));
    if (std::isnan(result.logprobs[i].logprob)) {
      logprobs.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    logprobs.push_back(Finite(result.logprobs[i].logprob));
    Json top = Json::object();
    for (const TokenLogprob& one : result.logprobs[i].top) {
      top.emplace(texts.Of(one.token), Finite(one.logprob));
    }
    tops.push_back(std::move(top));
  }
  return {{"tokens", tokens}, {"token_logprobs", logprobs}, {"top_logprobs", tops}};
}

}  // namespace godwit::chat
