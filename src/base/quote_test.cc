#include "base/quote.h"

#include <gtest/gtest.h>

#include <string>

namespace godwit {
namespace {

TEST(QuoteTest, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(Quote("model.layers.0.weight"), "\"model.layers.0.weight\"");
  EXPECT_EQ(Quote(""), "\"\"");
  EXPECT_EQ(Quote("größe 重み 🐦"), "\"größe 重み 🐦\"");
}

TEST(QuoteTest, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Quote("a\nb\x1b[31m\x7f"), "\"a\\x0ab\\x1b[31m\\x7f\"");
  EXPECT_EQ(Quote("\xc2\x9b"), "\"\\xc2\\x9b\"");
  EXPECT_EQ(Quote(std::string_view("\0", 1)), "\"\\x00\"");
  EXPECT_EQ(Quote("say \"\\\""), "\"say \\\"\\\\\\\"\"");
}

TEST(QuoteTest, EscapesMalformedUtf8) {
  EXPECT_EQ(Quote("\xff"), "\"\\xff\"");
  EXPECT_EQ(Quote("\xc0\xaf"), "\"\\xc0\\xaf\"");                    // overlong
  EXPECT_EQ(Quote("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"");           // a surrogate
  EXPECT_EQ(Quote("\xe4\xb8"), "\"\\xe4\\xb8\"");                    // cut short
  EXPECT_EQ(Quote("\xf4\x90\x80\x80"), "\"\\xf4\\x90\\x80\\x80\"");  // above U+10FFFF
}

TEST(QuoteTest, LeavesOutTheMiddleOfLongText) {
  const std::string quoted = Quote(std::string(1'000'000, 'x'), 10);
  EXPECT_EQ(quoted, "\"xxxxx[... 999990 bytes ...]xxxxx\"");
  // Never in the middle of a character.
  EXPECT_EQ(Quote("ääääää", 6), "\"ä[... 8 bytes ...]ä\"");
  EXPECT_LT(Quote(std::string(1000, '\x80'), 10).size(), 100u);
}

}  // namespace
}  // namespace godwit
