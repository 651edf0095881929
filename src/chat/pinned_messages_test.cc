#include "chat/pinned_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::chat::pinned_messages_test {
namespace {

using ::testing::HasSubstr;

// A codec in which a token is a byte and a message is [content].
ChatCodec Bytes() {
  return {.render =
              [](std::span<const Message> messages, bool open) {
                std::string text;
                for (const Message& message : messages) text += "[" + message.content + "]";
                return open ? text + "[" : text;
              },
          .encode = [](std::string_view text,
                       int64_t) { return std::vector<int32_t>(text.begin(), text.end()); },
          .decode = [](std::span<const int32_t> tokens,
                       bool) { return std::string(tokens.begin(), tokens.end()); }};
}

class PinnedMessagesTest : public testing::Test {
 protected:
  PinnedMessagesTest() { chat_.Ask("question"); }

  std::string With(const std::string& spec, std::optional<int32_t> sink = std::nullopt) {
    return WithPinnedMessages(spec, chat_, sink);
  }

  Conversation chat_{Bytes(), "four"};  // [four][question][
};

TEST_F(PinnedMessagesTest, ThePinMovesToTheEndOfAMessage) {
  EXPECT_EQ(With("sinks:2+30,pin=1"), "sinks:2+30,pin=6");
  EXPECT_EQ(With("sinks:2+30,pin=6"), "sinks:2+30,pin=6");
  EXPECT_EQ(With("sinks:2+30,pin=7"), "sinks:2+30,pin=16");
  EXPECT_EQ(With("sinks:2+30,pin=17"), "sinks:2+30,pin=16");
}

TEST_F(PinnedMessagesTest, TheModelsSinkTokenStandsBeforeThem) {
  EXPECT_EQ(With("sinks:2+30,pin=6", 77), "sinks:2+30,pin=7");
  EXPECT_EQ(With("sinks:2+30,pin=6", '['), "sinks:2+30,pin=6") << "the text begins with it";
}

TEST_F(PinnedMessagesTest, OtherSpecsStayAsTheyAre) {
  for (const char* spec : {"dense", "window:5", "sinks:2+30", "sinks:2+30,pin=0"}) {
    EXPECT_EQ(With(spec), spec);
  }
}

TEST_F(PinnedMessagesTest, OnlySinksKeepFirstAndLastTokens) {
  EXPECT_TRUE(KeepsFirstAndLast("sinks:2+30,pin=7"));
  for (const char* spec : {"dense", "window:5", "blocks"}) EXPECT_FALSE(KeepsFirstAndLast(spec));
}

TEST_F(PinnedMessagesTest, MessagesThatFillTheCacheAreRefused) {
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { With("sinks:2+14,pin=7"); }),
              HasSubstr("the first 16 tokens, in a cache of 16"));
}

}  // namespace
}  // namespace godwit::chat::pinned_messages_test
