// For tests only: a tokenizer.json taken apart into a Vocabulary, as a converter to GGUF does.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "text/vocabulary.h"

namespace godwit {

// Tokens, kinds and merges; or scores, where the merges are to follow from them. `added` has the
// white space that an added token takes in, as GGUF cannot say it. The cut of a text, a space in
// front and the frame are left to the caller.
inline Vocabulary VocabularyOfTokenizerJson(const nlohmann::json& json, VocabularyKind kind) {
  const auto& model = json.at("model");
  Vocabulary vocabulary{.kind = kind};
  const auto token = [&](int32_t id) -> VocabularyToken& {
    const auto at = static_cast<size_t>(id);
    if (at >= vocabulary.tokens.size()) vocabulary.tokens.resize(at + 1);
    return vocabulary.tokens[at];
  };
  if (kind == VocabularyKind::kUnigram) {
    for (const auto& [text, score] :
         model["vocab"].get<std::vector<std::pair<std::string, float>>>())
      vocabulary.tokens.push_back({.text = text, .score = score});
    vocabulary.unk_id = model["unk_id"].get<int32_t>();
  } else {
    for (const auto& [text, id] : model["vocab"].items()) token(id.get<int32_t>()).text = text;
  }
  for (const auto& each : json["added_tokens"]) {
    VocabularyToken& added = token(each["id"].get<int32_t>());
    added.text = each["content"].get<std::string>();
    added.kind = each["special"].get<bool>() ? TokenKind::kControl : TokenKind::kUserDefined;
    if (each["lstrip"].get<bool>() || each["rstrip"].get<bool>()) {
      vocabulary.added.push_back({.id = each["id"].get<int32_t>(),
                                  .text = added.text,
                                  .special = each["special"].get<bool>(),
                                  .lstrip = each["lstrip"].get<bool>(),
                                  .rstrip = each["rstrip"].get<bool>()});
    }
  }
  if (kind == VocabularyKind::kByteLevelBpe || kind == VocabularyKind::kSentencePieceBpe) {
    float score = 0;
    for (const auto& merge : model["merges"]) {
      const std::string pair = merge.is_array()
                                   ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                                   : merge.get<std::string>();
      if (kind == VocabularyKind::kByteLevelBpe) {
        vocabulary.merges.push_back(pair);
        continue;
      }
      std::string whole = pair;
      whole.erase(pair.find(' '), 1);
      float& of_whole = token(model["vocab"][whole].get<int32_t>()).score;
      if (of_whole == 0) of_whole = --score;
    }
  }
  if (kind != VocabularyKind::kByteLevelBpe && model.contains("unk_token") &&
      model["unk_token"].is_string()) {
    vocabulary.unk_id = model["vocab"][model["unk_token"].get<std::string>()].get<int32_t>();
  }
  for (VocabularyToken& each : vocabulary.tokens) {
    if (each.text.size() == 6 && each.text.starts_with("<0x")) each.kind = TokenKind::kByte;
  }
  return vocabulary;
}

}  // namespace godwit
