#include "lab/scored_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace godwit::lab::scored_files_test {
namespace {

using Texts = std::vector<std::vector<int32_t>>;

size_t TokensOf(const Texts& texts) {
  size_t tokens = 0;
  for (const auto& text : texts) tokens += text.size();
  return tokens;
}

TEST(TokenizeFiles, EndsWhenEnoughIsKnownToScore) {
  const Engine engine(GODWIT_SOURCE_DIR "/tests/data/tiny-llama", {.threads = 1});
  std::string text;
  while (text.size() < size_t{300} << 10) text += "There was a small bird. ";
  const Texts all = TokenizeFiles(engine, {text, text}, /*reset=*/true, /*scored_tokens=*/-1);
  ASSERT_EQ(all.size(), 2);
  const Texts some = TokenizeFiles(engine, {text, text}, /*reset=*/true, /*scored_tokens=*/100);
  ASSERT_EQ(some.size(), 1);
  EXPECT_LT(some[0].size(), all[0].size() / 2);
  ASSERT_GE(some[0].size(), 200);
  EXPECT_TRUE(std::equal(some[0].begin(), some[0].end(), all[0].begin()));
  // Two short texts together have enough tokens.
  const Texts short_texts = TokenizeFiles(engine, {"a", text}, /*reset=*/true, 100);
  EXPECT_EQ(short_texts.size(), 2);
  EXPECT_GE(TokensOf(short_texts), 200);
}

}  // namespace
}  // namespace godwit::lab::scored_files_test
