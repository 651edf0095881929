#include "text/fake_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace godwit::fake_tokenizer_test {
namespace {

TEST(FakeTokenizer, ATokenIsAByte) {
  const FakeTokenizer tokenizer;
  EXPECT_EQ(tokenizer.Encode("aé", false), (std::vector<int32_t>{97, 0xc3, 0xa9}));
  EXPECT_EQ(tokenizer.Encode("a", true), (std::vector<int32_t>{FakeTokenizer::kBos, 97}));
  EXPECT_EQ(tokenizer.VocabSize(), 258);
}

TEST(FakeTokenizer, DecodesAsARealOneDoes) {
  const FakeTokenizer tokenizer;
  const std::vector<int32_t> ids = {FakeTokenizer::kBos, 97, 0xc3, FakeTokenizer::kEos, 0xa9, 1000};
  EXPECT_EQ(tokenizer.Decode(ids, /*skip_special_tokens=*/true), "aé");
  EXPECT_EQ(tokenizer.Decode(ids, /*skip_special_tokens=*/false), "<s>a�</s>�");
  EXPECT_THROW(tokenizer.Decode(std::vector<int32_t>{-1}, true), Error);
}

TEST(FakeTokenizer, StreamsWholeCharacters) {
  const auto stream = FakeTokenizer().NewStream(/*skip_special_tokens=*/true);
  std::vector<std::string> pieces;
  for (const char c : std::string("a🐦\xf0"))
    pieces.push_back(stream->Push(static_cast<uint8_t>(c)));
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "", "", "", "🐦", ""}));
  EXPECT_EQ(stream->Flush(), "�");
}

TEST(FakeTokenizer, NamesItsTokens) {
  const FakeTokenizer tokenizer;
  EXPECT_EQ(tokenizer.TokenToId("</s>"), FakeTokenizer::kEos);
  EXPECT_EQ(tokenizer.IdToToken(FakeTokenizer::kBos), "<s>");
  EXPECT_EQ(tokenizer.TokenToId("ab"), std::nullopt);
  EXPECT_EQ(tokenizer.IdToToken(258), std::nullopt);
  EXPECT_TRUE(tokenizer.IsSpecial(FakeTokenizer::kEos));
  EXPECT_FALSE(tokenizer.IsSpecial('a'));
}

}  // namespace
}  // namespace godwit::fake_tokenizer_test
