#include "eval/encode_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "text/fake_tokenizer.h"

namespace godwit::eval::encode_pair_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kBos = FakeTokenizer::kBos;

std::vector<int32_t> EncodeBytes(std::string_view text) {
  return FakeTokenizer().Encode(text, /*add_special_tokens=*/true);
}

TEST(EncodePairTest, SplitsBehindTheContext) {
  const EncodedPair pair = EncodePair(EncodeBytes, "ab", " c");
  EXPECT_THAT(pair.tokens, ElementsAre(kBos, 'a', 'b', ' ', 'c'));
  EXPECT_EQ(pair.context_tokens, 3);
  EXPECT_EQ(pair.read_tokens(), 4);
}

TEST(EncodePairTest, BlanksAtTheEndBelongToTheContinuation) {
  const EncodedPair pair = EncodePair(EncodeBytes, "ab \n", "c");
  EXPECT_THAT(pair.tokens, ElementsAre(kBos, 'a', 'b', ' ', '\n', 'c'));
  EXPECT_EQ(pair.context_tokens, 3);
}

// "b c" is one token, so the context, which alone has two, ends within it.
TEST(EncodePairTest, RefusesWhenNothingIsLeftToScore) {
  const auto encode = [](std::string_view text) {
    return text == "ab" ? std::vector<int32_t>{1, 2} : std::vector<int32_t>{1, 3};
  };
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { EncodePair(encode, "ab", " c"); }),
              HasSubstr(R"(2 tokens of "ab" and 2 when followed by " c")"));
  // A blank context is no token without a BOS.
  const auto bytes = [](std::string_view text) { return FakeTokenizer().Encode(text, false); };
  ErrorOf(ErrorKind::kUnsupported, [&] { EncodePair(bytes, " ", "c"); });
  EXPECT_EQ(EncodePair(EncodeBytes, " ", "c").context_tokens, 1);
}

}  // namespace
}  // namespace godwit::eval::encode_pair_test
