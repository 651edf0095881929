#include "text/load_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/test_folder.h"
#include "base/utf8.h"
#include "text/test_data.h"

namespace godwit::load_tokenizer_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

std::string TokenizerJson(const std::string& name) {
  return ReadFile(TestData() / "tokenizers" / name / "tokenizer.json");
}

class TinyTokenizer : public ::testing::TestWithParam<std::string> {
 protected:
  const std::unique_ptr<Tokenizer> tokenizer_ =
      LoadTokenizer(TestData() / "tokenizers" / GetParam());
};

INSTANTIATE_TEST_SUITE_P(All, TinyTokenizer, ::testing::Values("byte_level", "sentencepiece"),
                         [](const auto& info) { return info.param; });

// One tokenizer of each kind that models come with.
TEST(SmallTokenizers, DoWhatHuggingFaceDoes) {
  int kinds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TestData() / "tokenizers")) {
    if (!entry.is_directory()) continue;
    ++kinds;
    const auto tokenizer = LoadTokenizer(entry.path());
    for (const auto& expected : ReadJson(entry.path() / "cases.json")) {
      SCOPED_TRACE(entry.path().string() + ": " + expected["name"].get<std::string>());
      const auto text = expected["text"].get<std::string>();
      const Ids ids = tokenizer->Encode(text, /*add_special_tokens=*/true);
      EXPECT_EQ(ids, expected["ids"].get<Ids>());
      EXPECT_EQ(tokenizer->Encode(text, false), expected["plain_ids"].get<Ids>());
      EXPECT_EQ(tokenizer->Decode(ids, /*skip_special_tokens=*/false), expected["decoded"]);
      EXPECT_EQ(tokenizer->Decode(ids, /*skip_special_tokens=*/true), expected["decoded_skip"]);
    }
  }
  EXPECT_GE(kinds, 8);
}

TEST_P(TinyTokenizer, KnowsItsTokens) {
  const std::optional<int32_t> bos = tokenizer_->TokenToId("<s>");
  ASSERT_TRUE(bos);
  EXPECT_EQ(tokenizer_->IdToToken(*bos), "<s>");
  EXPECT_TRUE(tokenizer_->IsSpecial(*bos));
  EXPECT_FALSE(tokenizer_->IsSpecial(*bos + 10));
  EXPECT_FALSE(tokenizer_->IsSpecial(-1));
  EXPECT_EQ(tokenizer_->TokenToId("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer_->IdToToken(tokenizer_->VocabSize()), std::nullopt);
  EXPECT_NE(tokenizer_->IdToToken(tokenizer_->VocabSize() - 1), std::nullopt);
}

TEST_P(TinyTokenizer, InvalidUtf8BecomesReplacementCharacters) {
  const std::string bytes = "a\xff\xe2\x82z\xf0\x9f";
  EXPECT_EQ(tokenizer_->Encode(bytes, true), tokenizer_->Encode(ReplaceInvalidUtf8(bytes), true));
}

TEST_P(TinyTokenizer, IdsWithoutATokenDecodeToNothing) {
  const int32_t size = tokenizer_->VocabSize();
  EXPECT_EQ(tokenizer_->Decode(Ids{size, size + 1000, 2'000'000'000}, false), "");
  EXPECT_EQ(tokenizer_->Decode(Ids{}, false), "");
  const Error error = ErrorOf([&] { tokenizer_->Decode(Ids{-5}, false); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), HasSubstr("-5"));
}

TEST_P(TinyTokenizer, EncodesAMegabyte) {
  // Half text, half one word: the cost of a merge step must not depend on the word's length.
  std::string text;
  while (text.size() < (size_t{1} << 19)) text += "The godwit flies 11,000 km über das Meer. 🐦\n";
  text += std::string(size_t{1} << 19, 'e');
  EXPECT_EQ(tokenizer_->Decode(tokenizer_->Encode(text, false), false), text);
}

TEST(LoadTokenizer, NeverTruncatesOrPads) {
  auto json = nlohmann::json::parse(TokenizerJson("byte_level"));
  json["truncation"] = {
      {"direction", "Right"}, {"max_length", 3}, {"strategy", "LongestFirst"}, {"stride", 0}};
  json["padding"] = {{"strategy", {{"Fixed", 64}}},   {"direction", "Right"}, {"pad_id", 0},
                     {"pad_to_multiple_of", nullptr}, {"pad_type_id", 0},     {"pad_token", "!"}};
  const auto plain = ParseTokenizer(TokenizerJson("byte_level"), "plain");
  const auto cut = ParseTokenizer(json.dump(), "cut");
  EXPECT_EQ(cut->Encode("The godwit flies far", true), plain->Encode("The godwit flies far", true));
}

TEST(LoadTokenizer, MergesEveryTimeWhatItMergedBefore) {
  auto json = nlohmann::json::parse(TokenizerJson("byte_level"));
  json["model"]["dropout"] = 0.5;
  const auto plain = ParseTokenizer(TokenizerJson("byte_level"), "plain");
  const auto dropping = ParseTokenizer(json.dump(), "dropping");
  const std::string text = "The godwit flies from Alaska to New Zealand without a stop.";
  EXPECT_EQ(dropping->Encode(text, true), plain->Encode(text, true));
}

TEST(LoadTokenizer, LlamaClassesFollowTheConfig) {
  const std::string json = TokenizerJson("sentencepiece");
  const auto frame = [&](TokenizerConfig config) {
    return ParseTokenizer(json, "tokenizer.json", config)->Encode("", true);
  };
  TokenizerConfig config;
  config.tokenizer_class = "LlamaTokenizerFast";
  config.named_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  EXPECT_THAT(frame(config), ElementsAre(1));
  config.add_bos_token = false;
  EXPECT_THAT(frame(config), ElementsAre());
  config.add_eos_token = true;
  EXPECT_THAT(frame(config), ElementsAre(2));
  config.add_bos_token = true;
  EXPECT_THAT(frame(config), ElementsAre(1, 2));
  config.add_bos_token = std::nullopt;
  EXPECT_THAT(frame(config), ElementsAre(1, 2));
  config.tokenizer_class = "Qwen2Tokenizer";
  EXPECT_THAT(frame(config), ElementsAre(1));

  config.tokenizer_class = "LlamaTokenizer";
  config.named_tokens["bos_token"] = "<not there>";
  EXPECT_THAT(ErrorOf([&] { frame(config); }).what(), HasSubstr("<not there>"));
  config.named_tokens.erase("bos_token");
  EXPECT_THAT(ErrorOf([&] { frame(config); }).what(), HasSubstr("names no bos_token"));
}

std::string Bpe(const char* vocab, const char* merges) {
  return fmt::format(R"({{"version": "1.0", "added_tokens": [],
                         "model": {{"type": "BPE", "vocab": {}, "merges": {}}}}})",
                     vocab, merges);
}

TEST(LoadTokenizer, RefusesBrokenFilesWithAReason) {
  const std::string json = TokenizerJson("byte_level");
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "{\"a\":";
  const std::vector<std::string> broken = {
      "",
      "{",
      "[]",
      "null",
      "{}",
      deep,
      std::string(10'000, '['),
      json.substr(0, json.size() / 2),
      json.substr(0, json.size() - 3),
      R"({"version": "1.0", "model": {"type": "BPE", "vocab": [], "merges": {}}})",
      R"({"version": "1.0", "model": {"type": "Nothing"}})",
      Bpe("{}", "[]"),
      Bpe(R"({"a": -1})", "[]"),
      Bpe(R"({"a": 4294967295})", "[]"),
      Bpe(R"({"a": 0})", R"(["b c"])"),
      "\xff\xfe",
  };
  for (const std::string& text : broken) {
    const TempFolder folder({{"tokenizer.json", text}});
    const Error error = ErrorOf([&] { LoadTokenizer(folder.path()); });
    EXPECT_EQ(error.kind(), ErrorKind::kFormat) << text.substr(0, 80) << ": " << error.what();
    EXPECT_THAT(error.what(), HasSubstr("tokenizer.json: "));
    EXPECT_LT(std::string(error.what()).size(), 1000);
  }
}

TEST(LoadTokenizer, NamesTheBrokenPartInPlainWords) {
  const std::vector<std::pair<nlohmann::json, std::string>> cases = {
      {{{"model", 5}}, "the model is of no known type"},
      {{{"normalizer", {{"type", "X"}}}}, "the normalizer is of no known type"},
      {{{"pre_tokenizer", {{"type", "X"}}}}, "the pre-tokenizer is of no known type"},
      {{{"post_processor", {{"type", "X"}}}}, "the post-processor is of no known type"},
      {{{"decoder", {{"type", "X"}}}}, "the decoder is of no known type"},
      {{{"truncation", 5}}, "expected an object at line 1"},
      {{{"normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "("}}}, {"content", ""}}}},
       "regular expression: end pattern with unmatched parenthesis"},
  };
  for (const auto& [change, reason] : cases) {
    auto file = nlohmann::json::parse(TokenizerJson("byte_level"));
    file.update(change);
    EXPECT_THAT(ErrorOf([&] { ParseTokenizer(file.dump(), "tokenizer.json"); }).what(),
                HasSubstr(reason));
  }
}

// Ids that a post-processor adds come from the file, not from the vocabulary.
TEST(LoadTokenizer, RefusesATemplateWithIdsOutsideTheVocabulary) {
  auto file = nlohmann::json::parse(TokenizerJson("byte_level"));
  auto& ids = file["post_processor"]["processors"][1]["special_tokens"]["<s>"]["ids"];
  for (const int64_t id : {int64_t{5000}, (int64_t{1} << 32) - 2}) {
    ids = {id};
    const Error error = ErrorOf([&] { ParseTokenizer(file.dump(), "tokenizer.json"); });
    EXPECT_EQ(error.kind(), ErrorKind::kFormat);
    EXPECT_EQ(error.what(),
              fmt::format("tokenizer.json: post_processor: it puts token id {} around every text, "
                          "which is not in the vocabulary",
                          id));
  }
}

TEST(LoadTokenizer, SurvivesEveryTruncationAndRandomDamage) {
  const std::string json = TokenizerJson("sentencepiece");
  for (size_t size = 0; size + 2 < json.size(); size += 97) {
    EXPECT_THROW(ParseTokenizer(std::string_view(json).substr(0, size), "cut"), Error);
  }
  for (size_t at = 0; at < json.size(); at += 41) {
    std::string damaged = json;
    damaged[at] = "{}[],:\"0x"[at % 9];
    try {
      const auto tokenizer = ParseTokenizer(damaged, "damaged");
      tokenizer->Decode(tokenizer->Encode("Hello <s> bird 🐦", true), false);
    } catch (const Error&) {
    }
  }
}

TEST(LoadTokenizer, NamesWhatIsMissing) {
  const TempFolder empty;
  const Error missing = ErrorOf([&] { LoadTokenizer(empty.path()); });
  EXPECT_EQ(missing.kind(), ErrorKind::kIo);
  EXPECT_THAT(missing.what(), HasSubstr("expected tokenizer.json, tokenizer.model, or vocab.json"));
  const TempFolder model({{"tokenizer.model", "x"}});
  EXPECT_THAT(ErrorOf([&] { LoadTokenizer(model.path()); }).what(), HasSubstr("tokenizer.model: "));
  std::filesystem::create_directory(empty.path() / "tokenizer.json");
  EXPECT_THAT(ErrorOf([&] { LoadTokenizer(empty.path()); }).what(),
              HasSubstr("tokenizer.json: expected a file, found a folder"));
}

}  // namespace
}  // namespace godwit::load_tokenizer_test
