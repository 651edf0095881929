#include "chat/conversation_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/test_support.h"
#include "chat/thought_fields.h"

namespace godwit::chat::conversation_file_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ConversationFile, HasTheShapeOfChatApis) {
  const SavedConversation said{.system = "be \"brief\"",
                               .messages = {{"user", "höflich?\n"}, {"assistant", " Ja 🐦"}}};
  const auto json = ParseJson(ToJson(said), "written");
  EXPECT_EQ(json, nlohmann::json::parse(R"({"messages": [
      {"role": "system", "content": "be \"brief\""}, {"role": "user", "content": "höflich?\n"},
      {"role": "assistant", "content": " Ja 🐦"}]})"));
  const SavedConversation back = ParseConversation(ToJson(said), "written");
  EXPECT_EQ(back.system, said.system);
  ASSERT_EQ(back.messages.size(), 2u);
  EXPECT_EQ(back.messages[1].content, " Ja 🐦");
}

TEST(ConversationFile, AThoughtIsAFieldOfItsAnswer) {
  const SavedConversation said{
      .messages = {{"user", "2?"}, {"assistant", "Two.", ThoughtFields("Hm.")}}};
  EXPECT_EQ(ParseJson(ToJson(said), "written")["messages"][1],
            nlohmann::json::parse(
                R"({"role": "assistant", "content": "Two.", "reasoning_content": "Hm."})"));
  EXPECT_EQ(ParseConversation(ToJson(said), "written").messages[1].fields, ThoughtFields("Hm."));
}

TEST(ConversationFile, OtherKeysBesideTheMessagesAndNullsMayStandThere) {
  const auto read = ParseConversation(R"({"model": "x", "messages": [
      {"role": "user", "content": "a", "name": null}, {"role": "assistant", "content": ""}]})",
                                      "file");
  EXPECT_EQ(read.system, std::nullopt);
  EXPECT_EQ(read.messages.size(), 2u);
  EXPECT_TRUE(ParseConversation(R"({"messages": []})", "file").messages.empty());
}

TEST(ConversationFile, UnsupportedMessagesAreRefused) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "line 1"},
      {"[]", "\"messages\""},
      {R"({"messages": {}})", "\"messages\""},
      {R"({"messages": [5]})", "message 1 must be an object"},
      {R"({"messages": [{"role": "user"}]})", "message 1 has no \"content\""},
      {R"({"messages": [{"content": "a"}]})", "message 1 has no \"role\""},
      {R"({"messages": [{"role": "user", "content": ["a"]}]})", "\"content\" must be text"},
      {R"({"messages": [{"role": "user", "content": "a", "tool_calls": []}]})", "\"tool_calls\""},
      {R"({"messages": [{"role": "assistant", "content": "a"}]})", "expected \"user\""},
      {R"({"messages": [{"role": "user", "content": "a"}]})", "no answer"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]})",
       "message 2 has the role \"system\""},
      {R"({"messages": [{"role": "\u001b[31m", "content": "a"}]})", "\\x1b"},
  };
  for (const auto& [text, reason] : cases) {
    EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&, text = text] { ParseConversation(text, "file"); }),
                AllOf(HasSubstr("file"), HasSubstr(reason)))
        << text;
  }
}

}  // namespace
}  // namespace godwit::chat::conversation_file_test
