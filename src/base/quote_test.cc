#include "base/quote.h"

#include <gtest/gtest.h>

#include <string>

namespace godwit::quote_test {
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
  // A cut never falls inside a character.
  EXPECT_EQ(Quote("ääääää", 6), "\"ä[... 8 bytes ...]ä\"");
  EXPECT_LT(Quote(std::string(1000, '\x80'), 10).size(), 100u);
}

TEST(QuoteTest, EscapesWhatTurnsTheDirectionOfWriting) {
  EXPECT_EQ(Quote("\u202Agpj.\u202Eexe"), "\"\\xe2\\x80\\xaagpj.\\xe2\\x80\\xaeexe\"");
  EXPECT_EQ(Quote("\u2066\u2069"), "\"\\xe2\\x81\\xa6\\xe2\\x81\\xa9\"");
  // Neighbours of the refused characters: a line separator, a narrow space, an invisible plus, a
  // joiner.
  for (const char* kept : {"\u2029", "\u202F", "\u2064", "\u206A", "\u200D"}) {
    EXPECT_EQ(Quote(kept), "\"" + std::string(kept) + "\"");
  }
}

TEST(QuoteUnlessPlainTest, QuotesWhatNeedsIt) {
  for (const char* plain : {"", "models/größe 重み", "it's"}) {
    EXPECT_EQ(QuoteUnlessPlain(plain), plain);
  }
  EXPECT_EQ(QuoteUnlessPlain("a\nb"), "\"a\\x0ab\"");
  EXPECT_EQ(QuoteUnlessPlain("\x1b[2J"), "\"\\x1b[2J\"");
  EXPECT_EQ(QuoteUnlessPlain(std::string(1000, 'x')), std::string(1000, 'x'));
}

TEST(PrintableTest, LeavesOrdinaryText) {
  const char* text = "Ein \"Satz\"\\ mit\tTabulator.\n重み 🏳️‍🌈 שלום\n";
  EXPECT_EQ(Printable(text), text);
}

TEST(PrintableTest, DisarmsWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("\x1b]0;title\a\x1b[2J"), "\\x1b]0;title\\x07\\x1b[2J");
  EXPECT_EQ(Printable("\u009b31m\x7f\b\v\f"), "\\xc2\\x9b31m\\x7f\\x08\\x0b\\x0c");
  EXPECT_EQ(Printable("\u202Eabc"), "\\xe2\\x80\\xaeabc");
  EXPECT_EQ(Printable("\x9b\xff"), "\\x9b\\xff");  // no UTF-8, though older terminals obey
  EXPECT_EQ(Printable(std::string_view("\0", 1)), "\\x00");
}

TEST(PrintableTest, LeavesOutCarriageReturns) {
  EXPECT_EQ(Printable("one\r\ntwo\rthree"), "one\ntwothree");
}

TEST(PrintableTest, TakesTextInPieces) {
  const std::string text = "a\x1b[31mb\r\n\u009bc";
  std::string pieces;
  for (const std::string_view piece : {"a\x1b", "[3", "1mb\r", "\n\u009b", "c"}) {
    pieces += Printable(piece);
  }
  EXPECT_EQ(pieces, Printable(text));
}

}  // namespace
}  // namespace godwit::quote_test
