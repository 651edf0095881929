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
  const AnswerForm form = FormOf("<|im_start|>assistant\n", /*is_token=*/{});
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
  const AnswerForm form = FormOf("<|Assistant|><think>\n", /*is_token=*/{});
  EXPECT_TRUE(form.thought.open);
  Expect("Well.\n</think>\n\nYes.", form, "Well.", "Yes.");
  Expect("<think>\nWell.</think>Yes.", form, "Well.", "Yes.");
  EXPECT_FALSE(FormOf("<think>\n\n</think>\n\n", /*is_token=*/{}).thought.open);
}

TEST(AnswerReader, ThoughtsInBrackets) {
  const AnswerForm form =
      FormOf("[/INST]", [](std::string_view text) { return text == "[THINK]"; });
  EXPECT_THAT(MarksOf(form, /*with_tools=*/true), Contains("[THINK]"));
  Expect("[THINK]Well.[/THINK]Yes.", form, "Well.", "Yes.");
}

TEST(AnswerReader, Channels) {
  const AnswerForm form = FormOf("<|end|><|start|>assistant", /*is_token=*/{});
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

// The end mark of a message within a string of arguments is a part of it.
TEST(AnswerReader, MarksOfChannelsWithinArguments) {
  const AnswerForm form = FormOf("<|start|>assistant", /*is_token=*/{});
  Expect(
      "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
      R"({"s": "a <|call|> \" <|end|>b"}<|call|>)",
      form, "", "", {{"f", R"({"s":"a <|call|> \" <|end|>b"})"}});
}

AnswerForm FormWith(std::string_view token, std::string_view prompt = "") {
  return FormOf(prompt, [&](std::string_view text) { return text == token; });
}

TEST(AnswerReader, ThoughtsBetweenOtherMarks) {
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)";
  Expect("<seed:think>Well.</seed:think>\n" + call, FormWith("<seed:think>"), "Well.", "", {kF});
  Expect("<|inner_prefix|>Well.<|inner_suffix|>Yes.", FormWith("<|inner_prefix|>"), "Well.",
         "Yes.");
  Expect("<|START_THINKING|>Well.<|END_THINKING|>Yes.", FormWith("<|START_THINKING|>"), "Well.",
         "Yes.");
  // Without these tokens the marks are text.
  Expect("<seed:think>Well.</seed:think>", FormOf("", /*is_token=*/{}), "",
         "<seed:think>Well.</seed:think>");
}

TEST(AnswerReader, ThoughtsWithATitle) {
  const AnswerForm form = FormWith("<|channel>", "<|turn>model\n");
  EXPECT_FALSE(form.thought.open);
  Expect("<|channel>thought\nWell.\n<channel|>Yes.", form, "Well.", "Yes.");
  Expect("<|channel>thought\nthought\n<channel|>Yes.", form, "thought", "Yes.");
  Expect("<|channel>thought\n<channel|>Yes.", form, "", "Yes.");
  Expect("<|channel>thou<channel|>Yes.", form, "thou", "Yes.");
  Expect("<|channel>\nthought\n<channel|>Yes.", form, "thought", "Yes.");
  Expect("<|channel>thoughts <channel|>Yes.", form, "thoughts ", "Yes.");
  Expect("<|channel>thought", form, "thought", "");
  Expect("thought\n", form, "", "thought\n");
  const AnswerForm open = FormWith("<|channel>", "<|turn>model\n<|channel>thought\n");
  EXPECT_TRUE(open.thought.open);
  Expect("Well.<channel|>Yes.", open, "Well.", "Yes.");
  EXPECT_FALSE(FormWith("<|channel>", "<|channel>thought\n<channel|>").thought.open);
}

// Templates that speak of marks around answers, as Hunyuan's and Granite 3.3's do.
constexpr std::string_view kHunyuan =
    "{{ content.split('<answer>')[-1].split('</answer>')[0] if '</answer>' in content }}";
constexpr std::string_view kGranite =
    "{%- if thinking %}Write it between <response></response>.{%- endif %}";

TEST(AnswerReader, MarksAroundTheAnswerAreNotShown) {
  const AnswerForm form = FormOf("<|hy_Assistant|>", /*is_token=*/{}, kHunyuan);
  Expect("<think>\nWell.\n</think>\n<answer>\nYes.\n\nNo.\n</answer>", form, "Well.",
         "Yes.\n\nNo.");
  Expect("<answer>Yes.</answer>\n", form, "", "Yes.");
  Expect("\n<answer>\n\nYes.</answer>", form, "", "Yes.");
  Expect("<think>Well.</think>Yes.", form, "Well.", "Yes.");
  Expect("<think>Well.</think>\n<answers>Yes.", form, "Well.", "<answers>Yes.");
  Expect("Yes. <answer>No.</answer>", form, "", "Yes. <answer>No.</answer>");
  // Cut off, within a mark or before one.
  Expect("<think>Well.</think>\n<answ", form, "Well.", "<answ");
  Expect("<think>Well.</think>\n<answer>\n", form, "Well.", "");
  Expect("<answer>Yes.\n", form, "", "Yes.\n");
  Expect("<answer>Yes.</ans", form, "", "Yes.</ans");
  Expect("<answer></answer>", form, "", "");
  // An answer that speaks of the mark.
  Expect("<answer>It is </answer>, see.\n</answer> <b> </answer>\n", form, "",
         "It is </answer>, see.\n</answer> <b> ");
  Expect("<answer><answer>Yes.</answer>", form, "", "<answer>Yes.");
  // Calls of tools, within the marks or behind them.
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)";
  Expect("<answer>Well.\n" + call + "\n</answer>", form, "", "Well.\n", {kF});
  Expect("<answer>\nWell.\n</answer>\n" + call, form, "", "Well.", {kF});
  Expect("<answer>Well.</answer><tool", form, "", "Well.<tool");
}

TEST(AnswerReader, MarksAroundTheAnswerAreThoseOfTheTemplate) {
  const std::string said = "<think>Well.</think><response>Yes.</response>";
  const std::string asked = "between <response></response>.<|start_of_role|>assistant";
  Expect(said, FormOf(asked, /*is_token=*/{}, kGranite), "Well.", "Yes.");
  // A user may ask any model for such marks.
  Expect(said, FormOf(asked, /*is_token=*/{}), "Well.", "<response>Yes.</response>");
  Expect(said, FormOf(asked, /*is_token=*/{}, kHunyuan), "Well.", "<response>Yes.</response>");
  Expect(said, FormOf("assistant", /*is_token=*/{}, kGranite), "Well.",
         "<response>Yes.</response>");
  Expect("<answer>Yes.</answer>", FormOf("", /*is_token=*/{}, kGranite), "",
         "<answer>Yes.</answer>");
  const auto marks = MarksOf(FormOf("", /*is_token=*/{}, kHunyuan), /*with_tools=*/false);
  EXPECT_THAT(marks, ElementsAre("<think>", "</think>", "<answer>", "</answer>"));
}

TEST(AnswerReader, MarkedAnswersComeAsTheyAreWritten) {
  const CompletionRequest request = Asked();
  AnswerReader reader(request, FormOf("", /*is_token=*/{}, kHunyuan));
  using Kind = AnswerPiece::Kind;
  EXPECT_THAT(reader.Push("<answer>\nYes"), ElementsAre(AnswerPiece{Kind::kText, "Yes"}));
  EXPECT_THAT(reader.Push("\n"), IsEmpty());
  EXPECT_THAT(reader.Push("No</ans"), ElementsAre(AnswerPiece{Kind::kText, "\nNo"}));
  EXPECT_THAT(reader.Push("wer>"), IsEmpty());
  EXPECT_THAT(reader.Finish(), IsEmpty());
}

TEST(AnswerReader, ThoughtsComeAsTheyAreThought) {
  const CompletionRequest request = Asked();
  AnswerReader reader(request, FormOf("", /*is_token=*/{}));
  using Kind = AnswerPiece::Kind;
  EXPECT_THAT(reader.Push("<think>\nWell"), ElementsAre(AnswerPiece{Kind::kThought, "Well"}));
  EXPECT_THAT(reader.Push("\n"), IsEmpty());
  EXPECT_THAT(reader.Push("so</thi"), ElementsAre(AnswerPiece{Kind::kThought, "\nso"}));
  EXPECT_THAT(reader.Push("nk>\nYes"), ElementsAre(AnswerPiece{Kind::kText, "Yes"}));
}

}  // namespace
}  // namespace godwit::chat::answer_reader_test
