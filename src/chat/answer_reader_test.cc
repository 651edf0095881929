#include "chat/answer_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

namespace godwit::chat::answer_reader_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

CompletionRequest Asked() {
  return ParseCompletionRequest(nlohmann::ordered_json::parse(R"({
      "messages": [{"role": "user", "content": "x"}],
      "tools": [{"type": "function", "function": {"name": "f"}}]})"));
}

// Reads the text, and checks that its division into pieces changes nothing.
WholeAnswer Read(std::string_view text, const AnswerForm& form) {
  const CompletionRequest request = Asked();
  WholeAnswer whole = ReadAnswer(request, form, text);
  for (const size_t size : {size_t{1}, size_t{2}, size_t{5}}) {
    AnswerReader reader(request, form);
    AnswerPieces pieces;
    const auto add = [&](AnswerPieces more) {
      pieces.insert(pieces.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
    };
    for (size_t at = 0; at < text.size(); at += size) add(reader.Push(text.substr(at, size)));
    add(reader.Finish());
    const WholeAnswer read = Join(pieces);
    EXPECT_EQ(read.thought, whole.thought) << text << " in pieces of " << size;
    EXPECT_EQ(read.text, whole.text) << text << " in pieces of " << size;
    EXPECT_EQ(read.calls, whole.calls) << text << " in pieces of " << size;
  }
  return whole;
}

void Expect(std::string_view text, const AnswerForm& form, std::string_view thought,
            std::string_view said, const std::vector<ToolCall>& calls = {}) {
  const WholeAnswer read = Read(text, form);
  EXPECT_EQ(read.thought, thought) << text;
  EXPECT_EQ(read.text, said) << text;
  EXPECT_EQ(read.calls, calls) << text;
}

const ToolCall kF{"f", R"({"x":1})"};

TEST(AnswerReader, Thoughts) {
  const AnswerForm form = FormOf("<|im_start|>assistant\n", /*bracketed=*/false);
  Expect("<think>\nWell, a < b.\n\nSo.\n</think>\n\nYes.", form, "Well, a < b.\n\nSo.", "Yes.");
  Expect("\n<think></think>Yes.", form, "", "Yes.");
  Expect("<think>Wel", form, "Wel", "");
  Expect("<think>Well</thi", form, "Well</thi", "");
  Expect("Yes. <think> no", form, "", "Yes. <think> no");
  Expect(" <thin", form, "", " <thin");
  Expect("", form, "", "");
  Expect("<think>{</think>\n[{\"name\": \"f\", \"arguments\": {\"x\": 1}}]", form, "{", "", {kF});
  Expect(
      "<think><tool_call></think>I look. <tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}"
      "</tool_call>",
      form, "<tool_call>", "I look. ", {kF});
}

TEST(AnswerReader, ThoughtsThatThePromptBegan) {
  const AnswerForm form = FormOf("<|Assistant|><think>\n", /*bracketed=*/false);
  EXPECT_TRUE(form.thought.open);
  Expect("Well.\n</think>\n\nYes.", form, "Well.", "Yes.");
  Expect("<think>\nWell.</think>Yes.", form, "Well.", "Yes.");
  EXPECT_FALSE(FormOf("<think>\n\n</think>\n\n", /*bracketed=*/false).thought.open);
}

TEST(AnswerReader, ThoughtsInBrackets) {
  const AnswerForm form = FormOf("[/INST]", /*bracketed=*/true);
  EXPECT_THAT(MarksOf(form, /*with_tools=*/true), Contains("[THINK]"));
  Expect("[THINK]Well.[/THINK]Yes.", form, "Well.", "Yes.");
}

TEST(AnswerReader, Channels) {
  const AnswerForm form = FormOf("<|end|><|start|>assistant", /*bracketed=*/false);
  ASSERT_TRUE(form.is_channels);
  EXPECT_THAT(MarksOf(form, /*with_tools=*/false), Contains("<|channel|>"));
  Expect(
      "<|channel|>analysis<|message|>a < b<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
      form, "a < b", "Yes.");
  Expect(
      "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary "
      "to=functions.f <|constrain|>json<|message|>{\"x\": 1}<|call|>",
      form, "I look.", "", {kF});
  Expect(
      "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.f"
      "<|channel|>commentary json<|message|>{}",
      form, "", "I look.", {{"f", "{}"}});
  Expect(" to=functions.f<|channel|>commentary<|message|><|call|>", form, "", "", {{"f", "{}"}});
  Expect("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b",
         form, "a\nb", "");
  Expect("<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>Yes. <b>",
         form, "a", "Yes. <b>");
  Expect("<|channel|>commentary to=functions.g<|message|>{}", form, "", "{}");
  Expect("Yes.", form, "", "Yes.");
  Expect("<|channel|>final<|message|>{\"name\": \"f\", \"arguments\": {\"x\": 1}}", form, "", "",
         {kF});
}

TEST(AnswerReader, ThoughtsComeAsTheyAreThought) {
  const CompletionRequest request = Asked();
  AnswerReader reader(request, FormOf("", /*bracketed=*/false));
  using Kind = AnswerPiece::Kind;
  EXPECT_THAT(reader.Push("<think>\nWell"), ElementsAre(AnswerPiece{Kind::kThought, "Well"}));
  EXPECT_THAT(reader.Push("\n"), IsEmpty());
  EXPECT_THAT(reader.Push("so</thi"), ElementsAre(AnswerPiece{Kind::kThought, "\nso"}));
  EXPECT_THAT(reader.Push("nk>\nYes"), ElementsAre(AnswerPiece{Kind::kText, "Yes"}));
}

}  // namespace
}  // namespace godwit::chat::answer_reader_test
