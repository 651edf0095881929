#include "checkpoint/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"

namespace godwit {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kTemplate = "tokenizer.chat_template";

struct Kind {
  std::string_view name;  // the value of tokenizer.ggml.model
  VocabularyKind kind;
  bool lists_merges = false;
};
constexpr Kind kKinds[] = {{"llama", VocabularyKind::kSentencePieceBpe},
                           {"gpt2", VocabularyKind::kByteLevelBpe, /*lists_merges=*/true},
                           {"t5", VocabularyKind::kUnigram},
                           {"gemma4", VocabularyKind::kSentencePieceBpe, /*lists_merges=*/true}};

// Ends of turns in the templates of Llama 3, Qwen and others (ChatML), Phi-3, Gemma, Falcon 3, and
// Gemma 4. A result of a tool follows where Gemma 4 has called one, so its mark ends a turn, too.
constexpr std::string_view kEndsOfTurns[] = {"<|eot_id|>",      "<|im_end|>",    "<|end|>",
                                             "<end_of_turn>",   "<|endoftext|>", "<turn|>",
                                             "<|tool_response>"};
// Ends of an answer and of a call in gpt-oss. Either consists of messages, which end with <|end|>.
constexpr std::string_view kEndsOfChannels[] = {"<|return|>", "<|call|>", "<|endoftext|>"};

const Kind& ReadKind(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.ggml.model";
  const std::string name = metadata.String(kKey);
  const auto found = std::ranges::find(kKinds, name, &Kind::name);
  if (found != std::end(kKinds)) return *found;
  metadata.Refuse(kKey, NameList(kKinds, &Kind::name, " or "), Quote(name),
                  ErrorKind::kUnsupported);
}

// Requires that the list is absent or has an element for every token.
template <typename List>
void RequireOneForEach(const GgufMetadata& metadata, std::string_view key, const List& list,
                       size_t tokens) {
  if (list.empty() || list.size() == tokens) return;
  metadata.Refuse(key, fmt::format("one for each of {} tokens", tokens),
                  fmt::format("{}", list.size()));
}

// Marks the tokens of Phi-3 and Phi-3.5 that take in the white space behind them. No key says so;
// the published tokenizer.json does. Phi-4 has a vocabulary of another kind.
void AddPhi3Tokens(const GgufMetadata& metadata, Vocabulary& vocabulary) {
  if (metadata.StringOr("general.architecture", "") != "phi3") return;
  if (vocabulary.kind != VocabularyKind::kSentencePieceBpe) return;
  constexpr std::string_view kOthers[] = {"<unk>", "<s>", "<|endoftext|>"};
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const VocabularyToken& token = vocabulary.tokens[i];
    const bool special = token.kind == TokenKind::kControl;
    if (!special && token.kind != TokenKind::kUserDefined) continue;
    if (std::ranges::find(kOthers, token.text) != std::end(kOthers)) continue;
    vocabulary.added.push_back(
        {.id = static_cast<int32_t>(i), .text = token.text, .special = special, .rstrip = true});
  }
}

// An id outside the vocabulary counts as none, and there is a warning.
std::optional<int32_t> ReadId(const GgufMetadata& metadata, std::string_view name, int64_t below,
                              std::vector<std::string>& warnings) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  if (!metadata.Has(key)) return std::nullopt;
  // Some files say -1 for "none", and as a u32 it is the largest number.
  constexpr int64_t kNone = UINT32_MAX;
  const int64_t id = metadata.Int(key, {-1, kNone});
  if (id == -1 || id == kNone) return std::nullopt;
  if (id < below) return static_cast<int32_t>(id);
  warnings.push_back(fmt::format("{}: {} {} is ignored: it is outside the vocabulary of {}",
                                 metadata.file_name(), key, id, below));
  return std::nullopt;
}

std::optional<bool> ReadFlag(const GgufMetadata& metadata, std::string_view key) {
  if (!metadata.Has(key)) return std::nullopt;
  return metadata.BoolOr(key, false);
}

}  // namespace

Vocabulary GgufVocabulary(const GgufMetadata& metadata) {
  const std::vector<std::string_view> texts = metadata.Strings(kTokens);
  const std::vector<int64_t> types = metadata.Ints(kTypes, {1, 6});
  const std::vector<float> scores = metadata.Floats(kScores);
  RequireOneForEach(metadata, kTypes, types, texts.size());
  RequireOneForEach(metadata, kScores, scores, texts.size());

  const Kind& kind = ReadKind(metadata);
  Vocabulary vocabulary{.kind = kind.kind};
  for (size_t i = 0; i < texts.size(); ++i) {
    vocabulary.tokens.push_back(
        {.text = std::string(texts[i]),
         .kind = types.empty() ? TokenKind::kNormal : static_cast<TokenKind>(types[i]),
         .score = scores.empty() ? 0 : scores[i]});
  }
  constexpr std::string_view kMerges = "tokenizer.ggml.merges";
  if (kind.lists_merges) {
    for (const std::string_view merge : metadata.Strings(kMerges)) {
      vocabulary.merges.emplace_back(merge);
    }
  }
  if (kind.name == "gemma4" && vocabulary.merges.empty()) {
    metadata.Refuse(kMerges, "a list", "none");
  }
  vocabulary.pre_tokenizer = metadata.StringOr("tokenizer.ggml.pre", "default");
  if (const auto prefix = ReadFlag(metadata, "tokenizer.ggml.add_space_prefix")) {
    vocabulary.space_prefix = *prefix ? SpacePrefix::kStretch : SpacePrefix::kNone;
  }
  vocabulary.remove_extra_whitespaces =
      metadata.BoolOr("tokenizer.ggml.remove_extra_whitespaces", false);
  for (const int64_t byte :
       metadata.Ints("tokenizer.ggml.precompiled_charsmap", {INT8_MIN, UINT8_MAX})) {
    vocabulary.charsmap += static_cast<char>(byte);
  }
  const auto count = std::ssize(texts);
  std::vector<std::string> warnings;  // GgufTokenizerConfig passes them on
  vocabulary.bos_id = ReadId(metadata, "bos", count, warnings);
  vocabulary.eos_id = ReadId(metadata, "eos", count, warnings);
  vocabulary.unk_id = ReadId(metadata, "unknown", count, warnings);
  vocabulary.add_bos = ReadFlag(metadata, "tokenizer.ggml.add_bos_token");
  vocabulary.add_eos = ReadFlag(metadata, "tokenizer.ggml.add_eos_token");
  AddPhi3Tokens(metadata, vocabulary);
  return vocabulary;
}

TokenizerConfig GgufTokenizerConfig(const GgufMetadata& metadata, int64_t vocab_size) {
  const std::vector<std::string_view> texts = metadata.Strings(kTokens);
  const std::vector<int64_t> types = metadata.Ints(kTypes, {1, 6});
  TokenizerConfig config;
  constexpr std::pair<std::string_view, const char*> kNamed[] = {{"bos", "bos_token"},
                                                                 {"eos", "eos_token"},
                                                                 {"unknown", "unk_token"},
                                                                 {"seperator", "sep_token"},
                                                                 {"padding", "pad_token"}};
  for (const auto& [name, key] : kNamed) {
    const auto id = ReadId(metadata, name, vocab_size, config.warnings);
    if (id && static_cast<size_t>(*id) < texts.size()) {
      config.named_tokens[key] = texts[*id];
    }
  }
  // Each role's newer name, then the older names of some.
  constexpr std::pair<std::string_view, const char*> kFill[] = {
      {"fim_pre", "prefix"}, {"fim_suf", "suffix"},     {"fim_mid", "middle"},
      {"fim_pad", "pad"},    {"fim_rep", "repository"}, {"fim_sep", "file"},
      {"prefix", "prefix"},  {"suffix", "suffix"},      {"middle", "middle"}};
  for (const auto& [name, role] : kFill) {
    const auto id = ReadId(metadata, name, vocab_size, config.warnings);
    if (id) config.fill_ids.emplace(role, *id);
  }
  std::vector<std::string> told;  // keys: the names above
  config.bos_id = ReadId(metadata, "bos", vocab_size, told);
  const auto eos = ReadId(metadata, "eos", vocab_size, told);
  const auto eot = ReadId(metadata, "eot", vocab_size, config.warnings);
  const auto eom = ReadId(metadata, "eom", vocab_size, config.warnings);
  for (const std::optional<int32_t>& id : {eos, eot, eom}) {
    if (id) config.eos_ids.push_back(*id);
  }
  constexpr auto kControl = static_cast<int64_t>(TokenKind::kControl);
  const bool in_channels = std::ranges::find(texts, "<|call|>") != texts.end() &&
                           std::ranges::find(texts, "<|channel|>") != texts.end();
  const std::span<const std::string_view> ends =
      in_channels ? std::span<const std::string_view>(kEndsOfChannels) : kEndsOfTurns;
  for (size_t i = 0; i < std::min(types.size(), texts.size()); ++i) {
    if (types[i] != kControl || static_cast<int64_t>(i) >= vocab_size) continue;
    if (std::ranges::find(ends, texts[i]) == ends.end()) continue;
    config.eos_ids.push_back(static_cast<int32_t>(i));
  }
  std::ranges::sort(config.eos_ids);
  config.eos_ids.erase(std::unique(config.eos_ids.begin(), config.eos_ids.end()),
                       config.eos_ids.end());
  return config;
}

std::optional<ChatTemplateSource> GgufChatTemplate(const GgufMetadata& metadata,
                                                   const std::string& choice) {
  const std::string key = choice.empty() || choice == "default"
                              ? std::string(kTemplate)
                              : fmt::format("{}.{}", kTemplate, choice);
  if (metadata.Has(key)) {
    return ChatTemplateSource{.text = metadata.String(key),
                              .what = fmt::format("{}: {}", metadata.file_name(), key)};
  }
  if (choice.empty()) return std::nullopt;
  if (IsListed(choice)) {
    constexpr size_t kMaxTemplateBytes = size_t{4} << 20;
    return ChatTemplateSource{.text = ReadTextFile(choice, kMaxTemplateBytes),
                              .what = choice + ": chat template"};
  }
  Throw(ErrorKind::kInput, "{} has no chat template called {}, and no such file exists",
        metadata.file_name(), Quote(choice));
}

std::map<std::string, std::string> GgufChatTemplates(const GgufMetadata& metadata) {
  std::map<std::string, std::string> templates;
  if (metadata.Has(kTemplate)) templates["default"] = metadata.String(kTemplate);
  for (const std::string_view name : metadata.Strings("tokenizer.chat_templates")) {
    templates.emplace(name, metadata.String(fmt::format("{}.{}", kTemplate, name)));
  }
  return templates;
}

}  // namespace godwit
