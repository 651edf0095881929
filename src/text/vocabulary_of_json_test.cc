#include "text/vocabulary_of_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/test_support.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"

namespace godwit::vocabulary_of_json_test {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

std::string Json(const std::string& name) {
  return ReadTextFile(TestData() / "tokenizers" / name / "tokenizer.json", 1 << 24);
}

Vocabulary Of(const std::string& name, int64_t min_tokens = 0) {
  const std::string json = Json(name);
  return VocabularyOf(*ParseTokenizer(json, name), json, name, min_tokens);
}

class RoundTrip : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, RoundTrip,
                         ::testing::Values("byte_level", "ignore_merges", "sentencepiece"));

TEST_P(RoundTrip, GivesTheSameIds) {
  const Vocabulary vocabulary = Of(GetParam());
  const auto made = MakeTokenizer(vocabulary, "made");
  const auto cases = ReadJson(TestData() / "tokenizers" / GetParam() / "cases.json");
  EXPECT_GE(cases.size(), 10);
  for (const auto& each : cases) {
    EXPECT_EQ(made->Encode(each["text"].get<std::string>(), /*add_special_tokens=*/true),
              each["ids"].get<Ids>())
        << each["text"];
  }
}

TEST(VocabularyOf, KeepsWhatTokensTakeInApart) {
  EXPECT_TRUE(Of("byte_level").added.empty());
  const Vocabulary vocabulary = Of("ignore_merges");
  ASSERT_FALSE(vocabulary.added.empty());
  for (const AddedToken& token : vocabulary.added) {
    EXPECT_TRUE(token.lstrip || token.rstrip || token.single_word || token.normalized);
  }
}

TEST(VocabularyOf, FillsIdsWithoutATokenUp) {
  const Vocabulary plain = Of("byte_level");
  const auto count = std::ssize(plain.tokens);
  const Vocabulary padded = Of("byte_level", count + 2);
  ASSERT_EQ(std::ssize(padded.tokens), count + 2);
  EXPECT_EQ(padded.tokens.back().text, fmt::format("[PAD{}]", count + 1));
  EXPECT_EQ(padded.tokens.back().kind, TokenKind::kUnused);
}

TEST(VocabularyOf, RefusesWhatHasNoForm) {
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Of("unigram"); }),
              HasSubstr("cannot be written to GGUF: it is Unigram, expected BPE"));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Of("word_piece"); }),
              HasSubstr("it is WordPiece, expected BPE"));
}

TEST(VocabularyOf, RefusesWaysToCutWordsWithoutAName) {
  nlohmann::json json = nlohmann::json::parse(Json("byte_level"));
  json["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {{{"type", "Split"},
                              {"pattern", {{"Regex", "e"}}},
                              {"behavior", "Isolated"},
                              {"invert", false}},
                             {{"type", "ByteLevel"},
                              {"add_prefix_space", false},
                              {"trim_offsets", true},
                              {"use_regex", false}}}}};
  const std::string text = json.dump();
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [&] { VocabularyOf(*ParseTokenizer(text, "x"), text, "x", 0); }),
              HasSubstr("GGUF has no name for the way in which it splits texts into words"));
}

}  // namespace
}  // namespace godwit::vocabulary_of_json_test
