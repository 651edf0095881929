#include "console/options/help.h"

#include <gtest/gtest.h>

namespace godwit::console::help_test {
namespace {

TEST(Help, WrapsBetweenWords) {
  EXPECT_EQ(Wrap("a b", 80), "a b");
  EXPECT_EQ(Wrap("", 80), "");
  EXPECT_EQ(Wrap("a b [c d] e", 8), "a b\n[c d] e");
  EXPECT_EQ(Wrap("a [b c", 4), "a\n[b c");
  EXPECT_EQ(Wrap("a [b c]", 4), "a [b\nc]");
  const std::string half(40, 'x');
  EXPECT_EQ(Wrap(half + " " + half, 80), half + "\n" + half);
  EXPECT_EQ(Wrap(half + " " + half, 80, 2), half + "\n  " + half);
}

TEST(Help, PutsLongNamesOnALineOfTheirOwn) {
  EXPECT_EQ(HelpEntry("-n", "number", 80), "  -n" + std::string(26, ' ') + "number\n");
  const std::string name(40, 'n');
  EXPECT_EQ(HelpEntry(name, "text", 80), "  " + name + "\n" + std::string(30, ' ') + "text\n");
}

TEST(Help, PutsTheTextBelowTheNameWhereThereIsLittleRoom) {
  EXPECT_EQ(HelpEntry("-n", "number", 60), "  -n\n      number\n");
}

}  // namespace
}  // namespace godwit::console::help_test
