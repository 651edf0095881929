#include "cli/options/help.h"

#include <gtest/gtest.h>

namespace godwit::cli {
namespace {

TEST(Help, WrapsBetweenWords) {
  EXPECT_EQ(Wrap("a b"), "a b");
  EXPECT_EQ(Wrap(""), "");
  const std::string half(40, 'x');
  EXPECT_EQ(Wrap(half + " " + half), half + "\n" + half);
  EXPECT_EQ(Wrap(half + " " + half, 2), half + "\n  " + half);
}

TEST(Help, PutsLongNamesOnALineOfTheirOwn) {
  EXPECT_EQ(HelpEntry("-n", "number"), "  -n" + std::string(26, ' ') + "number\n");
  const std::string name(40, 'n');
  EXPECT_EQ(HelpEntry(name, "text"), "  " + name + "\n" + std::string(30, ' ') + "text\n");
}

}  // namespace
}  // namespace godwit::cli
