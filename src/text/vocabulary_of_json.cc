#include "text/vocabulary_of_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "text/pre_tokenizers.h"

namespace godwit {
namespace {

using nlohmann::json;

constexpr size_t kMaxValues = size_t{1} << 24;  // eight times the most known

// A text with scripts, cases, contractions, numbers of all lengths, blanks, signs, rare marks and
// code.
constexpr std::string_view kProbe =
    "Hello world! I'm sure they'll say WE'VE won, don't you?  Two  spaces,   three\tand\t\ttabs\n"
    "\n\nlines \r\n \n  indented\n1 12 123 1234 12345 1234567890 3.14159 1,000,000 2nd x86 a1b2 "
    "\xc2\xb2\xc2\xbd \xd9\xa3\xd9\xa4\xd9\xa5\xd9\xa6\n"
    "na\xc3\xafve cafe\xcc\x81 \xc3\x85ngstr\xc3\xb6m \xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1"
    "\x82\xd0\x9c\xd0\xb8\xd1\x80 \xce\x93\xce\xb5\xce\xb9\xce\xac \xe4\xbd\xa0\xe5\xa5\xbd"
    "\xe4\xb8\x96\xe7\x95\x8c\xef\xbc\x8c\xe3\x81\x93\xe3\x82\x93\xe3\x81\xab\xe3\x81\xa1\xe3\x81"
    "\xaf \xec\x95\x88\xeb\x85\x95 \xe0\xa4\xa8\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0"
    "\xa5\x87 \xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7\xe0\xa5\xa4 \xf0\x9f\x99\x82\xf0\x9f\x91\xa9"
    "\xe2\x80\x8d\xf0\x9f\x92\xbb \xe2\x80\x9cquoted\xe2\x80\x9d\xe2\x80\xa6 \xe2\x82\xac"
    "5\n"
    "#include <a.h>\nint main(void) { return (a[i] += 0xff) != *p && !q; } // C++/Rust::f()\n"
    "def f(x):\n    return {'k': \"v\"}\n$HOME ~/x_y-z @user 100% ^^ || ... !!! ?! ---- ==== \\n "
    "camelCaseWord HTTPServer snake_case_word\n\n\n   ";

[[noreturn]] void RefuseKind(const std::string& what, std::string_view why) {
  Throw(ErrorKind::kUnsupported, "{}: its tokenizer cannot be written to GGUF: {}", what, why);
}

// The step without options that change no ids.
json WithoutOffsets(json step) {
  step.erase("trim_offsets");
  if (step.value("type", "") == "ByteLevel" && !step.contains("use_regex")) {
    step["use_regex"] = true;
  }
  return step;
}

// The steps of a "Sequence", or the only one.
std::vector<json> Steps(const json& root, const char* member, const char* list) {
  std::vector<json> steps;
  if (!root.contains(member) || root[member].is_null()) return steps;
  const json& value = root[member];
  if (value.value("type", "") == "Sequence" && value.contains(list)) {
    for (const json& step : value[list]) steps.push_back(WithoutOffsets(step));
  } else {
    steps.push_back(WithoutOffsets(value));
  }
  return steps;
}

bool HasType(const std::vector<json>& steps, std::string_view type) {
  return std::ranges::any_of(steps, [&](const json& s) { return s.value("type", "") == type; });
}

class Inverse {
 public:
  Inverse(const Tokenizer& tokenizer, std::string_view text, const std::string& what)
      : tokenizer_(tokenizer),
        what_(what),
        root_(ParseJson(text, what, {.max_values = kMaxValues})) {}

  Vocabulary Take(int64_t min_tokens) {
    const json& model = root_.at("model");
    const std::string type = model.value("type", "BPE");
    if (type != "BPE") RefuseKind(what_, "it is " + type + ", expected BPE");
    const std::vector<json> normalizers = Steps(root_, "normalizer", "normalizers");
    const std::vector<json> cuts = Steps(root_, "pre_tokenizer", "pretokenizers");
    const bool byte_level = HasType(cuts, "ByteLevel");
    vocabulary_.kind =
        byte_level ? VocabularyKind::kByteLevelBpe : VocabularyKind::kSentencePieceBpe;
    ReadTokens(model, min_tokens);
    ReadFrame();
    if (byte_level) {
      ReadMerges(model);
      NamePreTokenizer(normalizers, cuts, model.value("ignore_merges", false));
    } else {
      ScoreTokens(model);
      ReadSpaces(normalizers, cuts);
      if (!GivesSameIds()) RefuseKind(what_, "from the scores of tokens other ids would follow");
    }
    return std::move(vocabulary_);
  }

 private:
  void ReadTokens(const json& model, int64_t min_tokens) {
    std::map<int64_t, VocabularyToken> tokens;
    for (const auto& [text, id] : model.at("vocab").items()) {
      tokens[id.get<int64_t>()] = {.text = text, .kind = KindOf(text)};
    }
    if (model.contains("unk_token") && model["unk_token"].is_string()) {
      const std::string unknown = model["unk_token"];
      if (const auto id = tokenizer_.TokenToId(unknown)) {
        tokens[*id] = {.text = unknown, .kind = TokenKind::kUnknown};
        vocabulary_.unk_id = id;
      }
    }
    for (const json& added : root_.value("added_tokens", json::array())) {
      const auto id = added.at("id").get<int64_t>();
      VocabularyToken& token = tokens[id];
      token.text = added.at("content").get<std::string>();
      const bool special = added.value("special", false);
      if (token.kind != TokenKind::kUnknown) {
        token.kind = special ? TokenKind::kControl : TokenKind::kUserDefined;
      }
      AddUnsaid({.id = static_cast<int32_t>(id),
                 .text = token.text,
                 .special = special,
                 .single_word = added.value("single_word", false),
                 .lstrip = added.value("lstrip", false),
                 .rstrip = added.value("rstrip", false),
                 .normalized = added.value("normalized", false)});
    }
    const int64_t count = std::max(min_tokens, tokens.empty() ? 0 : tokens.rbegin()->first + 1);
    if (count > static_cast<int64_t>(kMaxTokens) ||
        (!tokens.empty() && tokens.begin()->first < 0)) {
      Throw(ErrorKind::kFormat, "{}: expected ids of tokens from 0 to {}", what_, kMaxTokens - 1);
    }
    for (int64_t id = 0; id < count; ++id) {
      const auto found = tokens.find(id);
      vocabulary_.tokens.push_back(
          found != tokens.end()
              ? found->second
              : VocabularyToken{.text = fmt::format("[PAD{}]", id), .kind = TokenKind::kUnused});
    }
  }

  // A token counts as searched for in normalized text only if there is a normalizer.
  void AddUnsaid(AddedToken token) {
    token.normalized &= root_.contains("normalizer") && !root_["normalizer"].is_null();
    if (token.single_word || token.lstrip || token.rstrip || token.normalized) {
      vocabulary_.added.push_back(std::move(token));
    }
  }

  // "<0x0A>" stands for a byte only in SentencePiece's vocabularies.
  TokenKind KindOf(const std::string& text) const {
    const bool byte = vocabulary_.kind == VocabularyKind::kSentencePieceBpe && text.size() == 6 &&
                      text.starts_with("<0x") && text.ends_with(">");
    return byte ? TokenKind::kByte : TokenKind::kNormal;
  }

  static std::pair<std::string, std::string> Halves(const json& merge) {
    if (merge.is_array()) return {merge.at(0), merge.at(1)};
    const std::string text = merge;
    const size_t blank = text.find(' ', 1);
    if (blank == std::string::npos) return {text, ""};
    return {text.substr(0, blank), text.substr(blank + 1)};
  }

  void ReadMerges(const json& model) {
    for (const json& merge : model.at("merges")) {
      const auto [left, right] = Halves(merge);
      vocabulary_.merges.push_back(left + " " + right);
    }
  }

  // A token's score falls with the place of the merge that forms it. Tokens without a merge come
  // last.
  void ScoreTokens(const json& model) {
    std::unordered_map<std::string, float> scores;
    for (const json& merge : model.at("merges")) {
      const auto [left, right] = Halves(merge);
      scores.emplace(left + right, -static_cast<float>(scores.size()));
    }
    const float last = -static_cast<float>(scores.size());
    for (VocabularyToken& token : vocabulary_.tokens) {
      const auto found = scores.find(token.text);
      token.score = found != scores.end()              ? found->second
                    : token.kind == TokenKind::kNormal ? last
                                                       : 0;
    }
  }

  // Finds the tokens that stand around every text.
  void ReadFrame() {
    const auto framed = tokenizer_.Encode("a", /*add_special_tokens=*/true);
    const auto plain = tokenizer_.Encode("a", /*add_special_tokens=*/false);
    const auto found = std::search(framed.begin(), framed.end(), plain.begin(), plain.end());
    const auto before = found - framed.begin();
    const auto behind = std::ssize(framed) - before - std::ssize(plain);
    if (found == framed.end() || before > 1 || behind > 1) {
      RefuseKind(what_, "expected at most one token in front of every text, and one behind it");
    }
    vocabulary_.add_bos = before == 1;
    vocabulary_.add_eos = behind == 1;
    if (before == 1) vocabulary_.bos_id = framed.front();
    if (behind == 1) vocabulary_.eos_id = framed.back();
  }

  void ReadSpaces(const std::vector<json>& normalizers, const std::vector<json>& cuts) {
    vocabulary_.space_prefix = SpacePrefix::kNone;
    for (const json& step : normalizers) {
      if (step.value("type", "") == "Prepend") vocabulary_.space_prefix = SpacePrefix::kStretch;
    }
    // A prefix of the whole text alone has no flag in GGUF, and differs only behind special tokens.
    for (const json& step : cuts) {
      if (step.value("type", "") == "Metaspace" &&
          step.value("prepend_scheme", "always") != "never") {
        vocabulary_.space_prefix = SpacePrefix::kStretch;
      }
    }
  }

  bool GivesSameIds() const {
    const std::unique_ptr<Tokenizer> made = MakeTokenizer(vocabulary_, what_);
    for (const bool framed : {false, true}) {
      if (made->Encode(kProbe, framed) != tokenizer_.Encode(kProbe, framed)) return false;
    }
    return true;
  }

  void NamePreTokenizer(const std::vector<json>& normalizers, const std::vector<json>& cuts,
                        bool ignore_merges) {
    const bool nfc = HasType(normalizers, "NFC");
    const auto says_the_same = [&](const PreTokenizer& each) {
      std::vector<json> steps;
      for (const auto& step : each.steps) steps.push_back(WithoutOffsets(json(step)));
      return steps == cuts && each.nfc == nfc && each.ignore_merges == ignore_merges;
    };
    const auto fits = [&](const PreTokenizer& each) {
      vocabulary_.pre_tokenizer = each.names.front();
      return GivesSameIds();
    };
    for (const bool likely : {true, false}) {
      for (const PreTokenizer& each : PreTokenizers()) {
        if (says_the_same(each) == likely && fits(each)) return;
      }
    }
    RefuseKind(what_, "GGUF has no name for the way in which it splits texts into words");
  }

  const Tokenizer& tokenizer_;
  const std::string& what_;
  const json root_;
  Vocabulary vocabulary_;
};

}  // namespace

Vocabulary VocabularyOf(const Tokenizer& tokenizer, std::string_view json, const std::string& what,
                        int64_t min_tokens) {
  try {
    return Inverse(tokenizer, json, what).Take(min_tokens);
  } catch (const nlohmann::json::exception&) {
    Throw(ErrorKind::kFormat, "{}: expected a tokenizer.json, with a model that has a vocab", what);
  }
}

}  // namespace godwit
