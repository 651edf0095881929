#include "cli/file_tokens.h"

#include <gtest/gtest.h>

#include <limits>

namespace godwit::cli::file_tokens_test {
namespace {

// A tokenizer with a token for each byte, which stops as early as is allowed.
constexpr auto kTokenPerByte = [](std::string_view text, int64_t limit_tokens) {
  const bool ends = std::ssize(text) > limit_tokens;
  return std::vector<int32_t>(ends ? static_cast<size_t>(limit_tokens) + 1 : text.size());
};

std::string Counted(const std::vector<console::NamedText>& texts, int64_t limit_tokens) {
  return Describe(CountTokens(texts, limit_tokens, kTokenPerByte));
}

TEST(FileTokens, AreSaidOfEachFile) {
  EXPECT_EQ(Counted({{"a.txt", "x"}, {"b.txt", "xyz"}}, 100),
            "a.txt: 1 token, b.txt: 3 tokens; together 4 tokens");
  EXPECT_EQ(Counted({{"a\nb", "x"}}, std::numeric_limits<int64_t>::max()), "\"a\\x0ab\": 1 token");
}

TEST(FileTokens, AreTrueBeyondTheLimitToo) {
  EXPECT_EQ(Counted({{"a", std::string(80, 'x')}}, 10), "a: 80 tokens");
  EXPECT_EQ(Counted({{"a", std::string(81, 'x')}}, 10), "a: more than 80 tokens");
}

TEST(FileTokens, TokensOfManyFilesAddUp) {
  std::vector<console::NamedText> texts(13, {"a", "xx"});
  EXPECT_EQ(Counted(texts, 100).find("more files"), std::string::npos);
  texts.resize(15, {"b", "xxx"});
  EXPECT_TRUE(
      Counted(texts, 100).ends_with("a: 2 tokens, and 3 more files: 8 tokens; together 32 tokens"));
}

}  // namespace
}  // namespace godwit::cli::file_tokens_test
