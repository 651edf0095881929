#include "text/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "text/load_tokenizer.h"
#include "text/pre_tokenizers.h"
#include "text/score_merges.h"

namespace godwit {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxTextBytes = size_t{16} << 20;   // five times the largest known
constexpr size_t kMaxJsonBytes = size_t{256} << 20;  // as for a tokenizer.json file
constexpr const char* kSpace = "\u2581";             // SentencePiece's letter for a space

std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    for (size_t i = at; i < at + 3; ++i) {
      three = three << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
    }
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[three >> shift & 63];
  }
  for (size_t i = bytes.size(); i % 3 != 0; ++i) text[text.size() - (3 - i % 3)] = '=';
  return text;
}

// Text that may not exceed what the tokenizer's process accepts.
class JsonText {
 public:
  explicit JsonText(std::string_view what) : what_(what) {}

  JsonText& operator+=(std::string_view piece) {
    text_ += piece;
    if (text_.size() > kMaxJsonBytes) {
      Throw(ErrorKind::kFormat, "{}: expected a vocabulary of at most {} bytes", what_,
            kMaxJsonBytes);
    }
    return *this;
  }
  std::string Take() { return std::move(text_); }

 private:
  const std::string_view what_;
  std::string text_;
};

// Writes one vocabulary.
class Writer {
 public:
  Writer(const Vocabulary& vocabulary, std::string_view what)
      : vocabulary_(vocabulary), what_(what), json_(what) {
    if (ByteLevel()) pre_tokenizer_ = &FindPreTokenizer(vocabulary.pre_tokenizer, what);
    CollectTexts();
    CollectAdded();
  }

  std::string Write() {
    json_ += R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
    for (const char* comma = ""; const auto& [id, token] : added_) {
      json_ += std::exchange(comma, ",");
      json_ += DumpJson(ordered_json{{"id", id},
                                     {"content", texts_[Place(id)]},
                                     {"single_word", token->single_word},
                                     {"lstrip", token->lstrip},
                                     {"rstrip", token->rstrip},
                                     {"normalized", token->normalized},
                                     {"special", token->special}});
    }
    const auto member = [&](const char* key, const ordered_json& value) {
      json_ += fmt::format(",\"{}\":{}", key, DumpJson(value));
    };
    json_ += "]";
    member("normalizer", Sequence("normalizers", Normalizers()));
    member("pre_tokenizer", Sequence("pretokenizers", PreTokenizers()));
    member("post_processor", PostProcessor());
    member("decoder", Decoder());
    json_ += ",\"model\":";
    vocabulary_.kind == VocabularyKind::kUnigram ? WriteUnigram() : WriteBpe();
    json_ += "}";
    return json_.Take();
  }

 private:
  static size_t Place(int32_t id) { return static_cast<size_t>(id); }

  bool ByteLevel() const { return vocabulary_.kind == VocabularyKind::kByteLevelBpe; }

  SpacePrefix Prefix() const {
    return vocabulary_.space_prefix.value_or(ByteLevel() ? SpacePrefix::kNone
                                                         : SpacePrefix::kStretch);
  }

  void CollectTexts() {
    if (vocabulary_.tokens.size() > kMaxTokens) {
      Throw(ErrorKind::kFormat, "{}: expected at most {} tokens, found {}", what_, kMaxTokens,
            vocabulary_.tokens.size());
    }
    for (const VocabularyToken& token : vocabulary_.tokens) texts_.push_back(token.text);
    std::map<int32_t, const AddedToken*> added;
    for (const AddedToken& token : vocabulary_.added) added[token.id] = &token;
    for (const auto& [id, token] : added) {
      if (id < 0 || Place(id) > texts_.size()) {
        Throw(ErrorKind::kFormat,
              "{}: the added token {} has id {}, but there are {} tokens before", what_,
              Quote(token->text), id, texts_.size());
      }
      if (Place(id) == texts_.size()) texts_.emplace_back();
      texts_[Place(id)] = token->text;
    }
    added_ = std::move(added);
    size_t bytes = 0;
    for (size_t id = 0; id < texts_.size(); ++id) {
      std::string& text = texts_[id];
      if (text.empty()) text = fmt::format("[EMPTY_{}]", id);
      bytes += text.size();
      if (FirstInvalidUtf8(text)) {
        Throw(ErrorKind::kFormat, "{}: token {} is not UTF-8: {}", what_, id, Quote(text));
      }
    }
    if (bytes > kMaxTextBytes) {
      Throw(ErrorKind::kFormat, "{}: its tokens are {} bytes, expected at most {}", what_, bytes,
            kMaxTextBytes);
    }
    ids_.reserve(texts_.size());
    for (size_t id = 0; id < texts_.size(); ++id) {
      const auto [first, fresh] = ids_.emplace(texts_[id], static_cast<int32_t>(id));
      if (!fresh) {
        Throw(ErrorKind::kFormat, "{}: tokens {} and {} are both {}", what_, first->second, id,
              Quote(texts_[id]));
      }
    }
  }

  // Adds tokens by their kind, unless the vocabulary describes them already.
  void CollectAdded() {
    static const AddedToken kSpecial = {.special = true};
    static const AddedToken kPlain = {};
    for (size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
      const VocabularyToken& token = vocabulary_.tokens[id];
      byte_fallback_ |= token.kind == TokenKind::kByte;
      if (token.kind == TokenKind::kControl || token.kind == TokenKind::kUnknown) {
        added_.try_emplace(static_cast<int32_t>(id), &kSpecial);
      } else if (token.kind == TokenKind::kUserDefined) {
        added_.try_emplace(static_cast<int32_t>(id), &kPlain);
      }
    }
  }

  // The text of a token that has a role.
  const std::string& Named(const char* role, std::optional<int32_t> id) const {
    if (id && *id >= 0 && Place(*id) < texts_.size()) return texts_[Place(*id)];
    Throw(ErrorKind::kFormat, "{}: the id of its {} token must lie below {}, found {}", what_, role,
          texts_.size(), id ? fmt::format("{}", *id) : "none");
  }

  static ordered_json Sequence(const char* key, const std::vector<ordered_json>& steps) {
    if (steps.empty()) return nullptr;
    if (steps.size() == 1) return steps.front();
    return {{"type", "Sequence"}, {key, steps}};
  }

  std::vector<ordered_json> Normalizers() const {
    std::vector<ordered_json> steps;
    if (ByteLevel()) {
      if (pre_tokenizer_->nfc) steps.push_back({{"type", "NFC"}});
      return steps;
    }
    if (!vocabulary_.charsmap.empty()) {
      steps.push_back(
          {{"type", "Precompiled"}, {"precompiled_charsmap", Base64(vocabulary_.charsmap)}});
    }
    if (vocabulary_.remove_extra_whitespaces) {
      steps.push_back(Replace("Regex", R"(\A +| +\z)", ""));
      steps.push_back(Replace("Regex", " {2,}", " "));
    }
    if (Prefix() == SpacePrefix::kStretch) {
      steps.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    }
    if (Prefix() != SpacePrefix::kText) steps.push_back(Replace("String", " ", kSpace));
    return steps;
  }

  std::vector<ordered_json> PreTokenizers() const {
    if (ByteLevel()) {
      std::vector<ordered_json> steps = pre_tokenizer_->steps;
      for (ordered_json& step : steps) {
        if (step.contains("add_prefix_space")) {
          step["add_prefix_space"] = Prefix() != SpacePrefix::kNone;
        }
      }
      return steps;
    }
    // Pieces of a unigram model lie within words.
    const bool split = vocabulary_.kind == VocabularyKind::kUnigram;
    if (Prefix() != SpacePrefix::kText && !split) return {};
    return {{{"type", "Metaspace"},
             {"replacement", kSpace},
             {"prepend_scheme", Prefix() == SpacePrefix::kText ? "first" : "never"},
             {"split", split}}};
  }

  ordered_json Decoder() const {
    if (ByteLevel()) {
      return {{"type", "ByteLevel"},
              {"add_prefix_space", false},
              {"trim_offsets", true},
              {"use_regex", true}};
    }
    std::vector<ordered_json> steps = {
        Replace("String", kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    if (Prefix() != SpacePrefix::kNone) {
      steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    return Sequence("decoders", steps);
  }

  static ordered_json Replace(const char* kind, const char* from, const char* to) {
    return {{"type", "Replace"}, {"pattern", {{kind, from}}}, {"content", to}};
  }

  // Puts the BOS and the EOS around a text.
  ordered_json PostProcessor() const {
    const auto part = [](const char* kind, const std::string& id, int type) -> ordered_json {
      return {{kind, {{"id", id}, {"type_id", type}}}};
    };
    std::vector<ordered_json> single = {part("Sequence", "A", 0)};
    ordered_json tokens = ordered_json::object();
    const auto frame = [&](const char* role, std::optional<int32_t> id) -> ordered_json {
      const std::string& text = Named(role, id);
      tokens[text] = {{"id", text},
                      {"ids", ordered_json::array({*id})},
                      {"tokens", ordered_json::array({text})}};
      return part("SpecialToken", text, 0);
    };
    const bool bos_by_kind = vocabulary_.kind == VocabularyKind::kSentencePieceBpe ||
                             (ByteLevel() && pre_tokenizer_->add_bos);
    const bool eos_by_kind = vocabulary_.kind == VocabularyKind::kUnigram;
    if (vocabulary_.add_bos.value_or(bos_by_kind && vocabulary_.bos_id)) {
      single.insert(single.begin(), frame("BOS", vocabulary_.bos_id));
    }
    if (vocabulary_.add_eos.value_or(eos_by_kind && vocabulary_.eos_id)) {
      single.push_back(frame("EOS", vocabulary_.eos_id));
    }
    if (tokens.empty()) return nullptr;
    std::vector<ordered_json> pair = single;  // never encoded
    pair.push_back(part("Sequence", "B", 1));
    return {{"type", "TemplateProcessing"},
            {"single", single},
            {"pair", pair},
            {"special_tokens", tokens}};
  }

  std::optional<int32_t> UnknownId() const {
    if (vocabulary_.unk_id || ByteLevel()) return vocabulary_.unk_id;
    const auto found =
        std::ranges::find(vocabulary_.tokens, TokenKind::kUnknown, &VocabularyToken::kind);
    if (found == vocabulary_.tokens.end()) return std::nullopt;
    return static_cast<int32_t>(found - vocabulary_.tokens.begin());
  }

  // Calls each for every token, in the order of ids.
  template <typename Each>
  void ForTokens(const Each& each) {
    for (size_t id = 0; id < texts_.size(); ++id) {
      if (id > 0) json_ += ",";
      each(DumpJson(ordered_json(texts_[id])), id);
    }
  }

  void WriteUnigram() {
    const std::optional<int32_t> unknown = UnknownId();
    if (unknown) (void)Named("unknown", unknown);
    json_ += fmt::format(R"({{"type":"Unigram","unk_id":{},"byte_fallback":{},"vocab":[)",
                         unknown ? fmt::format("{}", *unknown) : "null", byte_fallback_);
    ForTokens([&](const std::string& text, size_t id) {
      json_ += fmt::format("[{},{}]", text, Score(id));
    });
    json_ += "]}";
  }

  // The score as a double, which holds it exactly.
  double Score(size_t id) const {
    return id < vocabulary_.tokens.size() ? double{vocabulary_.tokens[id].score} : 0;
  }

  void WriteBpe() {
    const std::optional<int32_t> unknown = ByteLevel() ? std::nullopt : UnknownId();
    json_ += fmt::format(
        R"({{"type":"BPE","dropout":null,"unk_token":{},"continuing_subword_prefix":null,)"
        R"("end_of_word_suffix":null,"fuse_unk":{},"byte_fallback":{},"ignore_merges":{},)"
        R"("vocab":{{)",
        unknown ? DumpJson(ordered_json(Named("unknown", unknown))) : "null", !ByteLevel(),
        byte_fallback_, ByteLevel() && pre_tokenizer_->ignore_merges);
    ForTokens([&](const std::string& text, size_t id) {
      json_ += text;
      json_ += fmt::format(":{}", id);
    });
    json_ += R"(},"merges":[)";
    ByteLevel() || !vocabulary_.merges.empty() ? WriteMerges() : WriteScoreMerges();
    json_ += "]}";
  }

  void WriteMerges() {
    for (const char* comma = ""; const std::string& merge : vocabulary_.merges) {
      json_ += std::exchange(comma, ",");
      json_ += DumpJson(ordered_json(merge));
    }
  }

  void WriteScoreMerges() {
    const char* comma = "";
    for (const ScoreMerge& merge : MergesByScore(ids_, vocabulary_.tokens, kMaxJsonBytes, what_)) {
      json_ += std::exchange(comma, ",");
      json_ += DumpJson(ordered_json{texts_[Place(merge.left)], texts_[Place(merge.right)]});
    }
  }

  const Vocabulary& vocabulary_;
  const std::string_view what_;
  const PreTokenizer* pre_tokenizer_ = nullptr;  // of byte-level BPE
  std::vector<std::string> texts_;               // by id
  std::unordered_map<std::string_view, int32_t> ids_;
  std::map<int32_t, const AddedToken*> added_;  // by id, which those of a kind lack
  bool byte_fallback_ = false;
  JsonText json_;
};

}  // namespace

std::string TokenizerJson(const Vocabulary& vocabulary, std::string_view what) {
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (std::isfinite(vocabulary.tokens[id].score)) continue;
    Throw(ErrorKind::kFormat, "{}: the score of token {} is no finite number", what, id);
  }
  return Writer(vocabulary, what).Write();
}

std::unique_ptr<Tokenizer> MakeTokenizer(const Vocabulary& vocabulary, std::string_view what) {
  return ParseTokenizer(TokenizerJson(vocabulary, what), what);
}

}  // namespace godwit
