#include "console/terminal/word_wrap.h"

#include <gtest/gtest.h>

#include <clocale>

namespace godwit::console::word_wrap_test {
namespace {

class WordWrapTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr); }

  // Wraps in pieces of `piece` bytes, or more where that would split a character.
  static std::string Wrapped(std::string_view text, int columns, size_t piece = 1) {
    WordWrap wrap;
    std::string out;
    while (!text.empty()) {
      size_t n = std::min(piece, text.size());
      while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) ++n;
      out += wrap.Push(text.substr(0, n), columns);
      text.remove_prefix(n);
    }
    return out + wrap.Flush(columns);
  }
};

TEST_F(WordWrapTest, BreaksBetweenWords) {
  EXPECT_EQ(Wrapped("the bar-tailed godwit flies", 10), "the\nbar-tailed\ngodwit\nflies");
  EXPECT_EQ(Wrapped("ab cd", 5), "ab cd");
  EXPECT_EQ(Wrapped("ab cd", 4), "ab\ncd");
  EXPECT_EQ(Wrapped("ab  cd\n  ef", 4), "ab\ncd\n  ef");
}

TEST_F(WordWrapTest, PiecesMakeNoDifference) {
  const std::string text =
      "One day, a bird\tsaw   the sea.\n\n  It was 海の向こう, far\n```\nlong code "
      "that stays\n```\nand so on and on";
  for (const int columns : {1, 7, 12, 80}) {
    for (const size_t piece : {2, 5, 1000}) {
      EXPECT_EQ(Wrapped(text, columns, piece), Wrapped(text, columns, 1))
          << columns << ' ' << piece;
    }
  }
}

TEST_F(WordWrapTest, LosesNothingButBlanksAtTheEdge) {
  EXPECT_EQ(Wrapped(" a\n\n   b \n", 80), " a\n\n   b \n");
  EXPECT_EQ(Wrapped("", 80), "");
}

TEST_F(WordWrapTest, AWordLongerThanALineBeginsOneAndIsNotHeldBack) {
  WordWrap wrap;
  EXPECT_EQ(wrap.Push("ab 1234", 5), "ab\n1234");
  EXPECT_EQ(wrap.Push("56", 5), "56");
  EXPECT_EQ(wrap.Push(" c", 5), "");
  EXPECT_EQ(wrap.Flush(5), " c");
  EXPECT_EQ(Wrapped("1234567890 ab", 5), "1234567890\nab");
}

TEST_F(WordWrapTest, HoldsBackNoMoreThanAWord) {
  WordWrap wrap;
  EXPECT_EQ(wrap.Push("one two", 80), "one");
  EXPECT_EQ(wrap.Push(" ", 80), " two");
  EXPECT_EQ(wrap.Push("three", 80), "");
  EXPECT_EQ(wrap.Flush(80), " three");
}

TEST_F(WordWrapTest, CountsColumnsAndNotBytes) {
  EXPECT_EQ(Wrapped("äöü äöü", 7), "äöü äöü");
  EXPECT_EQ(Wrapped("e\u0301e\u0301 x", 4), "e\u0301e\u0301 x") << "combining accents";
  EXPECT_EQ(Wrapped("海海海", 4), "海海\n海") << "two columns each, parted anywhere";
  EXPECT_EQ(Wrapped("海海海", 5), "海海\n海");
}

TEST_F(WordWrapTest, TabsReachTheirStops) {
  EXPECT_EQ(Wrapped("a\tbc", 10), "a\tbc");
  EXPECT_EQ(Wrapped("a\tbc", 9), "a\nbc");
}

TEST_F(WordWrapTest, CodeKeepsItsLines) {
  const std::string code = "```cpp\nint main() { return 0; }\n```\n";
  EXPECT_EQ(Wrapped(code + "and so on", 6), code + "and so\non");
}

}  // namespace
}  // namespace godwit::console::word_wrap_test
