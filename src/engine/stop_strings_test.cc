#include "engine/stop_strings.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace godwit::stop_strings_test {
namespace {

// Feeds `text` in pieces of n bytes. Returns the output before the stop, or before the end.
std::string Feed(std::vector<std::string> stops, std::string_view text, size_t n) {
  StopStrings matcher(std::move(stops));
  std::string out;
  for (size_t i = 0; i < text.size(); i += n) out += matcher.Push(text.substr(i, n));
  return out + matcher.Flush();
}

TEST(StopStrings, CutsBeforeTheFirstStopWhateverThePieces) {
  for (size_t n = 1; n < 12; ++n) {
    EXPECT_EQ(Feed({"END", "\n\n"}, "one EN two\n END three", n), "one EN two\n ") << n;
    EXPECT_EQ(Feed({"aab"}, "aaab", n), "a") << n;
    EXPECT_EQ(Feed({"bc", "abc"}, "xabc", n), "x") << n;
    EXPECT_EQ(Feed({"never"}, "it is nev", n), "it is nev") << n;
    EXPECT_EQ(Feed({}, "plain", n), "plain") << n;
  }
}

TEST(StopStrings, TellsWhichCameUpFirst) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"one two", ""}, {"a END b\n\n", "END"}, {"a\n\nEND", "\n\n"}, {"ENDING", "END"}};
  for (const auto& [text, stop] : cases) {
    StopStrings matcher({"\n\n", "END", "ENDING"});
    (void)matcher.Push(text);
    EXPECT_EQ(matcher.stop(), stop) << text;
  }
}

TEST(StopStrings, HoldsBackOnlyWhatMayStillBecomeAStop) {
  StopStrings matcher({"stop"});
  EXPECT_EQ(matcher.Push("a st"), "a ");
  EXPECT_EQ(matcher.Push("ay"), "stay");
  EXPECT_EQ(matcher.Push(" sto"), " ");
  EXPECT_EQ(matcher.Push("p it"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.Push("more"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopStrings, AnEmptyStopStringIsRefused) { EXPECT_THROW(StopStrings({""}), Error); }

}  // namespace
}  // namespace godwit::stop_strings_test
