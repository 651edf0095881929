#include "chat/tool_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace godwit::chat::tool_calls_test {
namespace {

using ::testing::IsEmpty;

SaidWithCalls Read(std::string_view text, size_t piece) {
  ToolCallReader reader({"f", "g"});
  SaidWithCalls all;
  const auto take = [&](SaidWithCalls said) {
    all.text += said.text;
    for (ToolCall& call : said.calls) all.calls.push_back(std::move(call));
  };
  for (size_t at = 0; at < text.size(); at += piece) take(reader.Push(text.substr(at, piece)));
  take(reader.Finish());
  return all;
}

// However it comes in pieces.
void Expect(std::string_view text, std::string_view said, const std::vector<ToolCall>& calls) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, text.size() + 1}) {
    const SaidWithCalls read = Read(text, piece);
    EXPECT_EQ(read.text, said) << text << " in pieces of " << piece;
    EXPECT_EQ(read.calls, calls) << text << " in pieces of " << piece;
  }
}

const ToolCall kF{"f", R"({"x":1})"}, kG{"g", "{}"};

TEST(ToolCalls, Tagged) {
  Expect("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>", "", {kF});
  Expect(R"(I look. <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>
<tool_call>
{"name": "g", "arguments": {}}
</tool_call>)",
         "I look. ", {kF, kG});
  Expect(R"(<think>a < b</think>

<tool_call>{"name": "g", "arguments": {}}</tool_call> Done.)",
         "<think>a < b</think> Done.", {kG});
  Expect(R"(<tool_call>{"name": "g", "arguments": {}})", "", {kG});
}

TEST(ToolCalls, JsonAtTheBeginning) {
  Expect(R"({"name": "f", "parameters": {"x": 1}})", "", {kF});
  Expect(R"( {"name": "f", "parameters": {"x": 1}}; {"name": "g", "parameters": {}})", "",
         {kF, kG});
  Expect(R"([{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}])", "", {kF, kG});
  Expect(R"([TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}])", "", {kF});
  Expect(R"(<|python_tag|>{"name": "g", "parameters": {}})", "", {kG});
  Expect("Action: ```json\n[{\"tool_name\": \"f\", \"parameters\": {\"x\": 1}}]\n```", "", {kF});
  Expect("<think>{</think>\n[{\"name\": \"g\", \"arguments\": {}}]", "<think>{</think>", {kG});
  Expect(R"({"type": "function", "function": {"name": "f", "arguments": {"x": 1}}})", "", {kF});
}

TEST(ToolCalls, WhatIsNoneIsText) {
  for (const char* const text : {"",
                                 " ",
                                 "Hello.",
                                 "a < b",
                                 "<tool",
                                 "<tool_call>",
                                 "<tool_call>{</tool_call>",
                                 "<tool_call></tool_call> and <tool_call>",
                                 " \n<tool_call>[]</tool_call> \n<tool_call>",
                                 "{",
                                 "{}",
                                 "[]",
                                 "[1, 2]",
                                 "{\"name\": \"f\"}",
                                 R"({"name": "f", "arguments": "no object"})",
                                 R"({"name": "h", "arguments": {}})",
                                 R"(<tool_call>{"name": "h", "arguments": {}}</tool_call>)",
                                 R"({"name": "f", "arguments": {}} is how it goes)",
                                 "Action: I go.",
                                 "[TOOL_CALLS]",
                                 R"(See {"name": "f", "arguments": {}})",
                                 "</think>",
                                 "</think>{",
                                 "{\"a\": \"}\""}) {
    Expect(text, text, {});
  }
}

TEST(ToolCalls, WhatIsCertainIsNotHeldBack) {
  ToolCallReader reader({"f"});
  EXPECT_EQ(reader.Push("Hello").text, "Hello");
  EXPECT_EQ(reader.Push(" a <to").text, " a ");
  EXPECT_EQ(reader.Push("wn> b").text, "<town> b");
}

TEST(ToolCalls, WithoutToolsAllIsText) {
  ToolCallReader reader({});
  EXPECT_EQ(reader.Push("{<tool_call>").text, "{<tool_call>");
  EXPECT_THAT(reader.Finish().calls, IsEmpty());
}

}  // namespace
}  // namespace godwit::chat::tool_calls_test
