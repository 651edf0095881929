#include "base/ascii.h"

#include <gtest/gtest.h>

namespace godwit::ascii_test {
namespace {

TEST(AsciiTest, OtherBytesAreNeitherBlanksNorLetters) {
  for (int byte = -128; byte < 128; ++byte) {
    const char c = static_cast<char>(byte);
    EXPECT_EQ(IsSpace(c), std::string_view(" \t\n\v\f\r").find(c) != std::string_view::npos);
  }
  EXPECT_EQ(Lower("ÀZa[@ 9"), "Àza[@ 9");
}

}  // namespace
}  // namespace godwit::ascii_test
