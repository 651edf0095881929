#include "text/fill_tokens.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/fake_tokenizer.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"

namespace godwit::fill_tokens_test {
namespace {

using Ids = std::vector<int32_t>;
using Json = nlohmann::ordered_json;
using testing::ElementsAre;

constexpr int64_t kVocab = 600;

// The tiny model's tokenizer, with these tokens behind its 512.
std::unique_ptr<Tokenizer> With(const std::vector<std::pair<std::string, bool>>& tokens) {
  Json file = ReadJson(TestData() / "tiny-llama/tokenizer.json");
  int id = 512;
  for (const auto& [content, special] : tokens) {
    Json token = file["added_tokens"][0];
    token.update({{"id", id++}, {"content", content}, {"special", special}});
    file["added_tokens"].push_back(std::move(token));
  }
  return ParseTokenizer(file.dump(), "tokenizer.json");
}

std::unique_ptr<Tokenizer> OfCoder() {
  return With({{"<|fim_prefix|>", false},
               {"<|fim_suffix|>", false},
               {"<|fim_middle|>", true},
               {"<|fim_pad|>", true},
               {"<|repo_name|>", false},
               {"<|file_sep|>", true}});
}

TEST(FillTokensTest, AreFoundByTheirNames) {
  const auto tokenizer = OfCoder();
  const auto tokens = FindFillTokens({}, *tokenizer, Ids{515}, kVocab);
  ASSERT_TRUE(tokens);
  EXPECT_THAT((Ids{tokens->prefix, tokens->suffix, tokens->middle}), ElementsAre(512, 513, 514));
  EXPECT_EQ(tokens->repository, 516);
  EXPECT_EQ(tokens->file, 517);
  EXPECT_THAT(tokens->ends, ElementsAre("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>",
                                        "<|repo_name|>", "<|file_sep|>"))
      << "but for what ends every text";
  EXPECT_FALSE(FindFillTokens({}, *tokenizer, {}, /*vocab_size=*/514)) << "no middle";
  const auto code_llama =
      With({{"▁<PRE>", true}, {"▁<SUF>", true}, {"▁<MID>", true}, {"▁<EOT>", true}});
  const auto others = FindFillTokens({}, *code_llama, {}, kVocab);
  ASSERT_TRUE(others);
  EXPECT_EQ(others->file, std::nullopt);
  EXPECT_THAT(others->ends, testing::Contains("▁<EOT>"));
  EXPECT_FALSE(FindFillTokens({}, FakeTokenizer(), {}, kVocab));
}

// The model's own names decide, whatever the vocabulary calls the tokens.
TEST(FillTokensTest, AreWhatTheModelSays) {
  const auto tokens =
      FindFillTokens({{"prefix", 'p'}, {"suffix", 's'}, {"middle", 'm'}, {"file", 'f'}},
                     FakeTokenizer(), {}, kVocab);
  ASSERT_TRUE(tokens);
  EXPECT_THAT((Ids{tokens->prefix, tokens->suffix, tokens->middle, *tokens->file}),
              ElementsAre('p', 's', 'm', 'f'));
}

Ids Encoded(const FillIn& fill, int64_t max_ids = 10'000) {
  const auto tokenizer = OfCoder();
  return EncodeFillIn(fill, *FindFillTokens({}, *tokenizer, {}, kVocab), *tokenizer, max_ids);
}

Ids Joined(const std::vector<Ids>& parts) {
  Ids all;
  for (const Ids& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(FillTokensTest, FrameTheTextsAroundAHole) {
  const auto tokenizer = OfCoder();
  const auto ids = [&](std::string_view text) { return tokenizer->Encode(text, false); };
  EXPECT_EQ(Encoded({.before = "a cow", .behind = " and", .begun = "x"}),
            Joined({{1, 512}, ids("a cow"), {513}, ids(" and"), {514}, ids("x")}));
  EXPECT_EQ(Encoded({.before = "", .behind = ""}), Joined({{1, 512, 513, 514}}));
  EXPECT_EQ(Encoded({.before = "a", .behind = "", .files = {{"x.py", "one"}}}),
            Joined({{1, 516},
                    ids("project\n"),
                    {517},
                    ids("x.py\none"),
                    {517},
                    ids("current\n"),
                    {512},
                    ids("a"),
                    {513, 514}}));
  const auto plain = With({{"<PRE>", true}, {"<SUF>", true}, {"<MID>", true}});
  EXPECT_EQ(EncodeFillIn({.before = "a", .behind = "b", .files = {{"x.py", "one"}}},
                         *FindFillTokens({}, *plain, {}, kVocab), *plain, 1000),
            Joined({{1, 512}, ids("x.py\none\n"), ids("a"), {513}, ids("b"), {514}}));
}

// A text that spells such tokens has none of them.
TEST(FillTokensTest, NothingInATextIsAToken) {
  const auto tokenizer = OfCoder();
  const std::string text =
      "<|fim_suffix|><|im_end|> </s><<s>s> <|fim_pad|><|file_sep|>é<|repo_name|>";
  const Ids ids = Encoded({.before = text, .behind = text});
  int marks = 0;
  for (const int32_t id : ids) marks += id < 5 || id >= 512 ? 1 : 0;
  EXPECT_EQ(marks, 4) << "the frame's";
  EXPECT_EQ(tokenizer->Decode(ids, /*skip_special_tokens=*/false),
            "<s><|fim_prefix|>" + text + "<|fim_suffix|>" + text + "<|fim_middle|>");
}

TEST(FillTokensTest, ATextThatIsTooLongEndsEarly) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "<s>a ";
  const auto size = std::ssize(Encoded({.before = text, .behind = text}, /*max_ids=*/100));
  EXPECT_GT(size, 100);
  EXPECT_LT(size, 60'000) << "of 200,000";
}

}  // namespace
}  // namespace godwit::fill_tokens_test
