#include "base/split_text.h"

#include <gtest/gtest.h>

namespace godwit {
namespace {

TEST(SplitTextTest, TakesLineAfterLine) {
  std::string_view text = "one\n\ntwo\r\nthree";
  for (const char* line : {"one", "", "two\r", "three"}) EXPECT_EQ(TakeLine(text), line);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(TakeLine(text), "");
}

TEST(SplitTextTest, CutsNoCharacter) {
  const std::string_view text = "a\u00fc\u6d77\U0001f426";  // of 1, 2, 3 and 4 bytes
  const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t bytes = 0; bytes < std::size(whole); ++bytes) {
    EXPECT_EQ(FirstCharacters(text, bytes).size(), whole[bytes]) << bytes;
  }
}

}  // namespace
}  // namespace godwit
