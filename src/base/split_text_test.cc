#include "base/split_text.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace godwit::split_text_test {
namespace {

TEST(SplitTextTest, TakesLineAfterLine) {
  std::string_view text = "one\n\ntwo\r\nthree";
  for (const char* line : {"one", "", "two\r", "three"}) EXPECT_EQ(TakeLine(text), line);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(TakeLine(text), "");
}

TEST(SplitTextTest, SplitsAtEveryMark) {
  EXPECT_EQ(SplitAt(',', "a,,b"), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(SplitAt(',', ""), std::vector<std::string_view>{""});
  EXPECT_EQ(SplitAt(';', "a,b;"), (std::vector<std::string_view>{"a,b", ""}));
}

TEST(SplitTextTest, Strips) {
  EXPECT_EQ(Stripped(" a b\t\n"), "a b");
  EXPECT_EQ(Stripped("a"), "a");
  EXPECT_EQ(Stripped(" \n"), "");
  EXPECT_EQ(Stripped(""), "");
}

}  // namespace
}  // namespace godwit::split_text_test
