#include "console/options/escape.h"

#include <gtest/gtest.h>

namespace godwit::console::escape_test {
namespace {

TEST(Escape, Processes) {
  EXPECT_EQ(ProcessEscapes(R"(a\nb\tc\\d\"e\'f\r)"), "a\nb\tc\\d\"e'f\r");
  EXPECT_EQ(ProcessEscapes(R"(\x41\x4a\xe6\xb5\xb7)"), "AJ海");
  EXPECT_EQ(ProcessEscapes(R"(\x9z)"), "\tz");
}

TEST(Escape, LeavesWhatItDoesNotKnow) {
  EXPECT_EQ(ProcessEscapes(R"(C:\dir \d \x \xg)"), R"(C:\dir \d \x \xg)");
  EXPECT_EQ(ProcessEscapes("end\\"), "end\\");
  EXPECT_EQ(ProcessEscapes(""), "");
}

TEST(Escape, ShowsAndProcessesBack) {
  const std::string text = "a\nb\tc\\d\r\x1b[0m\x7f 海";
  EXPECT_EQ(ShowEscapes("\x1b[0m\n"), R"(\x1b[0m\n)");
  EXPECT_EQ(ShowEscapes("\u009b1m \u202e"), R"(\xc2\x9b1m \xe2\x80\xae)");
  EXPECT_EQ(ProcessEscapes(ShowEscapes(text)), text);
}

}  // namespace
}  // namespace godwit::console::escape_test
