#include "chat/tool_calls.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace godwit::chat::tool_calls_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Tools Offered() {
  return ParseTools(nlohmann::ordered_json::parse(R"([
      {"type": "function", "function": {"name": "f", "parameters": {"properties": {
        "x": {"type": "integer"}, "s": {"type": "string"}, "l": {"type": "array"},
        "o": {"type": ["string", "null"]}, "any": {}}}}},
      {"type": "function", "function": {"name": "g"}}])"));
}

WholeAnswer Read(std::string_view text, size_t piece, bool only_calls) {
  const Tools tools = Offered();
  ToolCallReader reader(tools, only_calls);
  AnswerPieces all;
  for (size_t at = 0; at < text.size(); at += piece) reader.Push(text.substr(at, piece), all);
  reader.Finish(all);
  return Join(all);
}

// Expects the calls, whatever pieces the text comes in.
void Expect(std::string_view text, std::string_view said, const std::vector<ToolCall>& calls,
            bool only_calls = false) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, text.size() + 1}) {
    const WholeAnswer read = Read(text, piece, only_calls);
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
  Expect(R"(<tool_call>{"name": "g", "arguments": {}}</tool_call> Done.)", " Done.", {kG});
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
  Expect(R"({"type": "function", "function": {"name": "f", "arguments": {"x": 1}}})", "", {kF});
}

TEST(ToolCalls, InACodeFence) {
  Expect("```json\n{\n  \"name\": \"f\",\n  \"arguments\": {\"x\": 1}\n}\n```", "", {kF});
  Expect("```\n{\"name\": \"g\", \"arguments\": {}}\n```\n", "", {kG});
  for (const char* const text : {"```json\n{\"x\": 1}\n```", "```python\nf()\n```", "```", "``",
                                 "```json\n{\"name\": \"g\", \"arguments\": {}}\n```\nSo."}) {
    Expect(text, text, {});
  }
}

TEST(ToolCalls, TextThatIsNoCallStaysText) {
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
                                 "[f(x=1)] it is",
                                 "[f(x=y)]",
                                 "[h(x=1)]",
                                 "[f(",
                                 "<function=h></function>",
                                 "<tool_call>h<arg_key>x</arg_key></tool_call>",
                                 "<tool_call>f<b></tool_call>",
                                 "[TOOL_CALLS]h[ARGS]{}",
                                 "[TOOL_CALLS]f[ARGS]",
                                 "[TOOL_CALLS]f of it",
                                 "{\"a\": \"}\""}) {
    Expect(text, text, {});
  }
}

TEST(ToolCalls, MarksWithinArgumentsArePartOfThem) {
  const ToolCall call{"f", R"({"s":"a </tool_call> \" } b"})"};
  Expect(R"(<tool_call>{"name": "f", "arguments": {"s": "a </tool_call> \" } b"}}</tool_call>)", "",
         {call});
  Expect(R"(<tool_call>
<function=f>
<parameter=s>
a </tool_call> </function> </parameter>
b
</parameter>
</function>
</tool_call>)",
         "", {{"f", R"({"s":"a </tool_call> </function> </parameter>\nb"})"}});
  Expect(
      "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>a</arg_value></b></arg_value>\n</tool_call>",
      "", {{"f", R"({"s":"a</arg_value></b>"})"}});
  Expect(R"x(<|tool_call_start|>[f(s="]<|tool_call_end|>')")]<|tool_call_end|>)x", "",
         {{"f", R"x({"s":"]<|tool_call_end|>')"})x"}});
}

TEST(ToolCalls, ArgumentsThatAreTextOfJson) {
  Expect(R"(<tool_call>{"name": "f", "arguments": "{\"x\": 1}"}</tool_call>)", "", {kF});
}

TEST(ToolCalls, ParametersInTags) {
  Expect(R"(I look.

<tool_call>
<function=f>
<parameter=x>
1
</parameter>
<parameter=s>

 two
lines "here"

</parameter>
<parameter=l>
[1, "a"]
</parameter>
</function>
</tool_call>
<tool_call>
<function=g>
</function>
</tool_call>)",
         "I look.\n\n", {{"f", R"({"x":1,"s":"\n two\nlines \"here\"\n","l":[1,"a"]})"}, kG});
  // Models leave the first mark out.
  Expect("<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call> So.", " So.",
         {kF});
  Expect(R"(<function=f>{"x": 1}</function>)", "", {kF});
  Expect("<tool_call><function=f><parameter=x>1</parameter></tool_call>", "", {kF});
}

TEST(ToolCalls, ValuesAreOfTheTypesOfTheSchema) {
  const auto value = [](std::string_view key, std::string_view text, std::string_view json) {
    Expect(fmt::format("<tool_call>f<arg_key>{}</arg_key><arg_value>{}</arg_value></tool_call>",
                       key, text),
           "", {{"f", fmt::format(R"({{"{}":{}}})", key, json)}});
  };
  value("x", "12", "12");
  value("x", "twelve", R"("twelve")");
  value("s", "12", R"("12")");
  value("o", "null", R"("null")");
  value("any", "True", "true");
  value("any", "{'a': None}", R"({"a":null})");
  value("any", "a\tb", R"("a\tb")");
  value("unknown", "1", R"("1")");
  value("s", "é\u0001", R"("é\u0001")");
}

// The text of a call, which must stay text, with the name of a tool that was not offered.
void ExpectTextIfUnknown(std::string text) {
  const size_t name = text.find("@");
  ASSERT_NE(name, text.npos);
  text.replace(name, 1, "unknown");
  Expect(text, text, {});
}

TEST(ToolCalls, SeedOss) {
  Expect(R"(I look.
<seed:tool_call>
<function=f>
<parameter=x>1</parameter>
<parameter=s>a </seed:tool_call> </function>
 b</parameter>
</function>
</seed:tool_call><seed:tool_call>
<function=g>
</function>
</seed:tool_call>)",
         "I look.\n", {{"f", R"({"x":1,"s":"a </seed:tool_call> </function>\n b"})"}, kG});
  Expect("<seed:tool_call><function=f><parameter=s>\na\n</parameter></function></seed:tool_call>",
         "", {{"f", R"({"s":"\na\n"})"}});
  Expect("<seed:tool_call><function=f><parameter=s>a", "", {{"f", R"({"s":"a)"}});
  ExpectTextIfUnknown("<seed:tool_call><function=@></function></seed:tool_call>");
}

TEST(ToolCalls, MiniMax) {
  Expect(R"(I look.
<minimax:tool_call>
<invoke name="f">
<parameter name="x">1</parameter>
<parameter name="s">a </invoke> </parameter> <b></parameter>
<parameter name="l">[1, "a"]</parameter>
</invoke>
<invoke name="g">
</invoke>
</minimax:tool_call> So.)",
         "I look.\n So.", {{"f", R"({"x":1,"s":"a </invoke> </parameter> <b>","l":[1,"a"]})"}, kG});
  Expect(R"(<minimax:tool_call><invoke name="f"><parameter name="x">1</parameter></invoke>)", "",
         {kF});
  Expect(R"(<minimax:tool_call><invoke name="f"><parameter name="s">a</para)", "",
         {{"f", R"({"s":"a</para)"}});
  ExpectTextIfUnknown(R"(<minimax:tool_call><invoke name="@"></invoke></minimax:tool_call>)");
  for (const char* const text :
       {"<minimax:tool_call>", "<minimax:tool_call>\n<invoke name=\"f", "<invoke name=\"f\">",
        "<minimax:tool_call><invoke name=\"f\"x></invoke></minimax:tool_call>",
        "<minimax:tool_call><invite name=\"f\"></invite></minimax:tool_call>"}) {
    Expect(text, text, {});
  }
}

TEST(ToolCalls, DeepSeekV32) {
  for (const char* const block : {"function_calls", "tool_calls"}) {
    const std::string calls = fmt::format(R"(I look.

<｜DSML｜{0}>
<｜DSML｜invoke name="f">
<｜DSML｜parameter name="x" string="false">1</｜DSML｜parameter>
<｜DSML｜parameter name="s" string="true">a </｜DSML｜invoke> </｜DSML｜{0}></｜DSML｜parameter>
<｜DSML｜parameter name="any" string="true">12</｜DSML｜parameter>
</｜DSML｜invoke>
<｜DSML｜invoke name="g">
</｜DSML｜invoke>
</｜DSML｜{0}>)",
                                          block);
    Expect(calls, "I look.\n\n",
           {{"f",
             fmt::format(R"({{"x":1,"s":"a </｜DSML｜invoke> </｜DSML｜{}>","any":"12"}})", block)},
            kG});
    ExpectTextIfUnknown(fmt::format(
        "<｜DSML｜{0}>\n<｜DSML｜invoke name=\"@\">\n</｜DSML｜invoke>\n</｜DSML｜{0}>", block));
  }
}

TEST(ToolCalls, DeepSeekV31) {
  Expect(
      "I look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"x\": "
      "1}<｜tool▁call▁end｜>"
      "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      "I look.", {kF, kG});
  Expect(
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"s\": \"a <｜tool▁call▁end｜> "
      "}\"}"
      "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      "", {{"f", R"({"s":"a <｜tool▁call▁end｜> }"})"}});
  // DeepSeek V3 and R1.
  Expect(
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"x\": 1}\n```"
      "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```"
      "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      "", {kF, kG});
  Expect("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"s\": \"a", "",
         {{"f", R"({"s":"a)"}});
  ExpectTextIfUnknown(
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>@<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
      "<｜tool▁calls▁end｜>");
  ExpectTextIfUnknown(
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>@\n```json\n{}\n```"
      "<｜tool▁call▁end｜><｜tool▁calls▁end｜>");
  for (const char* const text :
       {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>x{}",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```js\n{}"}) {
    Expect(text, text, {});
  }
}

TEST(ToolCalls, Kimi) {
  const std::string begin = "<|tool_calls_section_begin|>", end = "<|tool_calls_section_end|>";
  Expect("I look." + begin +
             R"(<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"x": 1})"
             R"(<|tool_call_end|> <|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{})"
             "<|tool_call_end|>" +
             end + " So.",
         "I look. So.", {kF, kG});
  Expect(
      begin + R"(<|tool_call_begin|>f<|tool_call_argument_begin|>{"s": "<|tool_call_end|>"})" + end,
      "", {{"f", R"({"s":"<|tool_call_end|>"})"}});
  ExpectTextIfUnknown(begin +
                      "<|tool_call_begin|>functions.@:0<|tool_call_argument_begin|>{}"
                      "<|tool_call_end|>" +
                      end);
  ExpectTextIfUnknown(begin + "<|tool_call_begin|>functions.f@:<|tool_call_argument_begin|>{}" +
                      end);
  for (const std::string& text : {begin, begin + end, begin + "<|tool_call_begin|>functions.f:0"}) {
    Expect(text, text, {});
  }
}

TEST(ToolCalls, Gemma) {
  Expect(R"x(I look.<|tool_call>call:f{any:{b:[true,-2.5,None],c:{}},s:<|"|>a "b" \
},<tool_call|> <|"|>c<|"|>,x:1}<tool_call|><|tool_call>call:g{}<tool_call|>)x",
         "I look.",
         {{"f", R"({"any":{"b":[true,-2.5,null],"c":{}},)"
                R"("s":"a \"b\" \\\n},<tool_call|> <|\"|>c","x":1})"},
          kG});
  Expect(
      R"(<|tool_call>call:f{"s": "é\n\"}", <|"|>x<|"|> : 1 , l:[ ] , o : Ulm on <b>}<tool_call|>)",
      "", {{"f", R"({"s":"é\n\"}","x":1,"l":[],"o":"Ulm on <b>"})"}});
  Expect(R"(<|tool_call>call:f{s:<|"|>a)", "", {{"f", R"({"s":"a)"}});
  Expect(R"(<|tool_call>call:f{s:<|"|>a<|"|>)", "", {{"f", R"({"s":"a")"}});
  Expect(R"(<|tool_call>call:f{s:<|"|>a<|"|>}So.)", "So.", {{"f", R"({"s":"a"})"}});
  Expect(R"(<|tool_call>call:f{s:<|"|>a<|"|><|"|>}<tool_call|>)", "",
         {{"f", R"({"s":"a<|\"|>"})"}});
  ExpectTextIfUnknown("<|tool_call>call:@{}<tool_call|>");
  for (const char* const text :
       {"<|tool_call>", "<|tool_call>call:f", "<|tool_call>call f{}", "<|tool_call>ring:f{}"}) {
    Expect(text, text, {});
  }
}

// A malformed call ends where it breaks, and its arguments so far stay, as in one that is cut off.
TEST(ToolCalls, GemmaCallsThatBreakOff) {
  for (const char* const broken : {"{}", "}", "]", ",", ":", "[", "2"}) {
    const std::string begin = R"(<|tool_call>call:f{s:<|"|>a<|"|>,)";
    const bool is_passed = broken[0] == '2' || broken[0] == ',';
    Expect(begin + broken, is_passed ? "" : broken, {{"f", R"({"s":"a",)"}});
  }
  Expect("<|tool_call>call:f{x:}", "}", {{"f", R"({"x":)"}});
  Expect("<|tool_call>call:f{x}", "}", {{"f", R"({"x")"}});
  Expect("<|tool_call>call:f{l:[1:", ":", {{"f", R"({"l":[1)"}});
  Expect("<|tool_call>call:f{l:[1}", "}", {{"f", R"({"l":[1)"}});
  Expect(R"(<|tool_call>call:f{s:<|"|>a<|"|>:)", ":", {{"f", R"({"s":"a")"}});
}

TEST(ToolCalls, Lists) {
  const std::string list = R"([{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": )";
  Expect("I look. <TOOLCALL>" + list + "{}}]</TOOLCALL>", "I look. ", {kF, kG});
  Expect("<TOOLCALL>" + list + R"("{}"}]</TOOLCALL>)", "", {kF, kG});
  Expect("<tool_calls>" + list + "{}}]</tool_calls>", "", {kF, kG});
  Expect(R"(<|tools_prefix|>[{"f": {"x": 1}}, {"g": {}}]<|tools_suffix|>)", "", {kF, kG});
  Expect(R"(<|tools_prefix|>[{"f": {"s": "]<|tools_suffix|>"}}]<|tools_suffix|>So.)", "So.",
         {{"f", R"({"s":"]<|tools_suffix|>"})"}});
  Expect(R"(<|tools_prefix|>[{"f": {"s": "a)", "", {{"f", R"({"s":"a)"}});
  ExpectTextIfUnknown(R"(<|tools_prefix|>[{"@": {}}]<|tools_suffix|>)");
  ExpectTextIfUnknown(R"(<TOOLCALL>[{"name": "@", "arguments": {}}]</TOOLCALL>)");
  Expect(
      R"(<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"x": 1}},
{"tool_call_id": "1", "tool_name": "g", "parameters": {}}
]<|END_ACTION|>)",
      "", {kF, kG});
  // Names as keys are calls only within these marks.
  Expect(R"([{"f": {"x": 1}}])", R"([{"f": {"x": 1}}])", {});
}

TEST(ToolCalls, Hunyuan) {
  Expect(R"(I look.
<tool_calls>
<tool_call>f
```json
{"x": 1}
```
</tool_call>
<tool_call>g
```json
{}
```
</tool_call>
</tool_calls>)",
         "I look.\n", {kF, kG});
  Expect(R"(<tool_calls>
<tool_call>f<tool_sep>
<arg_key>x</arg_key>
<arg_value>1</arg_value>
</tool_call>
<tool_call>g<tool_sep>
</tool_call>
</tool_calls>)",
         "", {kF, kG});
  ExpectTextIfUnknown("<tool_calls>\n<tool_call>@\n```json\n{}\n```\n</tool_call>\n</tool_calls>");
  Expect("<tool_call>f\n```json\n{\"s\": \"</tool_call>```\"}\n```\n</tool_call>", "",
         {{"f", R"({"s":"</tool_call>```"})"}});
}

TEST(ToolCalls, NamesAndKeysInTags) {
  Expect(R"(<tool_call>f
<arg_key>x</arg_key>
<arg_value>1</arg_value>
<arg_key>s</arg_key>
<arg_value>b</arg_value>
</tool_call><tool_call>g</tool_call>)",
         "", {{"f", R"({"x":1,"s":"b"})"}, kG});
}

TEST(ToolCalls, Python) {
  const std::string calls =
      R"([f(x=1, s='it\'s "so"', l=[1.5, (True, None)], any={'k': -2}), g()])";
  const ToolCall f{"f", R"({"x":1,"s":"it's \"so\"","l":[1.5,[true,null]],"any":{"k":-2}})"};
  Expect(calls, "", {f, kG});
  Expect("<|tool_call_start|>" + calls + "<|tool_call_end|>I look.", "I look.", {f, kG});
  Expect(R"([f(s="\u00e9\n\x41")])", "", {{"f", R"({"s":"é\nA"})"}});
}

TEST(ToolCalls, Mistral) {
  Expect(R"([TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]g[CALL_ID]a1[ARGS]{})", "", {kF, kG});
  Expect(R"(I look.[TOOL_CALLS]f{"x": 1})", "I look.", {kF});
  Expect(R"(<|tool_call|>[{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}])",
         "", {kF, kG});
}

TEST(ToolCalls, ArgumentsComeAsTheyAreWritten) {
  const Tools tools = Offered();
  ToolCallReader reader(tools, /*only_calls=*/false);
  const auto push = [&](std::string_view piece) {
    AnswerPieces pieces;
    reader.Push(piece, pieces);
    return pieces;
  };
  using Kind = AnswerPiece::Kind;
  EXPECT_THAT(push(R"(<tool_call>{"name": "f", "arg)"), IsEmpty());
  EXPECT_THAT(
      push(R"(uments": {"s": "so)"),
      ElementsAre(AnswerPiece{Kind::kCall, "f"}, AnswerPiece{Kind::kArguments, R"({"s":"so)"}));
  EXPECT_THAT(push(" far"), ElementsAre(AnswerPiece{Kind::kArguments, " far"}));
  // Two calls in one piece.
  EXPECT_THAT(push(R"("}}</tool_call><tool_call><function=f><parameter=s>a)"),
              ElementsAre(AnswerPiece{Kind::kArguments, "\"}"}, AnswerPiece{Kind::kCall, "f"},
                          AnswerPiece{Kind::kArguments, R"({"s":"a)"}));
  EXPECT_THAT(push("b"), ElementsAre(AnswerPiece{Kind::kArguments, "b"}));
}

TEST(ToolCalls, ArgumentsOfAllFormatsComeAsTheyAreWritten) {
  using Kind = AnswerPiece::Kind;
  const struct {
    const char *begin, *text;
  } formats[] = {
      {R"(<|tool_call>call:f{s:<|"|>so)", R"({"s":"so)"},
      {R"(<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>)"
       R"({"s": "so)",
       R"({"s":"so)"},
      {R"(<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"s": "so)", R"({"s":"so)"},
      {R"(<minimax:tool_call><invoke name="f"><parameter name="s">so)", R"({"s":"so)"},
      {R"(<｜DSML｜function_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="s" string="true">so)",
       R"({"s":"so)"},
      {R"(<seed:tool_call><function=f><parameter=s>so)", R"({"s":"so)"},
      {R"(<TOOLCALL>[{"name": "f", "arguments": {"s": "so)", R"({"s":"so)"},
      {R"(<|tools_prefix|>[{"f": {"s": "so)", R"({"s":"so)"},
      {"<tool_calls>\n<tool_call>f\n```json\n{\"s\": \"so", R"({"s":"so)"},
  };
  const Tools tools = Offered();
  for (const auto& [begin, text] : formats) {
    ToolCallReader reader(tools, /*only_calls=*/false);
    AnswerPieces pieces;
    reader.Push(begin, pieces);
    EXPECT_THAT(pieces,
                ElementsAre(AnswerPiece{Kind::kCall, "f"}, AnswerPiece{Kind::kArguments, text}))
        << begin;
    pieces.clear();
    reader.Push(" far", pieces);
    EXPECT_THAT(pieces, ElementsAre(AnswerPiece{Kind::kArguments, " far"})) << begin;
  }
}

// Calls that are cut off are reported as far as they came.
TEST(ToolCalls, CutOff) {
  Expect(R"(<tool_call>{"name": "f", "arguments": {"s": "a)", "", {{"f", R"({"s":"a)"}});
  Expect("<tool_call><function=f><parameter=s>a", "", {{"f", R"({"s":"a)"}});
  Expect("<tool_call><function=f><parameter=s>a</parameter>\n", "", {{"f", R"({"s":"a")"}});
  Expect(R"(<tool_call>{"name": "f", "arg)", R"(<tool_call>{"name": "f", "arg)", {});
}

// Behind a malformed call the next call is read.
TEST(ToolCalls, BehindWhatIsNone) {
  Expect(R"(<tool_call>{oops}</tool_call><tool_call>{"name": "g", "arguments": {}}</tool_call>)",
         "<tool_call>{oops}</tool_call>", {kG});
  Expect("<tool_call>\n<tool_call>g</tool_call>", "<tool_call>\n", {kG});
}

TEST(ToolCalls, WhereNothingElseCanBeTheyAreCertain) {
  const Tools tools = Offered();
  ToolCallReader reader(tools, /*only_calls=*/true);
  AnswerPieces pieces;
  reader.Push(R"([{"name": "f", "arguments": {"x")", pieces);
  EXPECT_EQ(Join(pieces).calls, (std::vector<ToolCall>{{"f", R"({"x")"}}));
  Expect(R"([{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}])", "", {kF, kG},
         /*only_calls=*/true);
}

TEST(ToolCalls, CertainTextIsNotHeldBack) {
  const Tools tools = Offered();
  ToolCallReader reader(tools, /*only_calls=*/false);
  const auto push = [&](std::string_view piece) {
    AnswerPieces pieces;
    reader.Push(piece, pieces);
    return Join(pieces).text;
  };
  EXPECT_EQ(push("Hello"), "Hello");
  EXPECT_EQ(push(" a <to"), " a ");
  EXPECT_EQ(push("wn> b"), "<town> b");
}

TEST(ToolCalls, MarksThatAreSpecialTokensAreSpelledOut) {
  std::vector<std::string> marks = ToolCallReader::Marks();
  for (const char* const text :
       {"<tool_call> </tool_call> <arg_key> </arg_value> [TOOL_CALLS] [ARGS] <tool_calls> "
        "<tool_sep>",
        "<|tool_call> <tool_call|> <|\"|> <|tool_call_start|> <|tool_call_end|> ｜DSML｜",
        "<|tool_calls_section_begin|> <|tool_call_begin|> <|tool_call_argument_begin|>",
        "<|tool_calls_section_end|> <minimax:tool_call> </minimax:tool_call> <seed:tool_call>",
        "<｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> <｜tool▁sep｜> <｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜> <TOOLCALL> <|tools_prefix|> <|tools_suffix|> <|START_ACTION|>"}) {
    std::istringstream expected(text);
    for (std::string mark; expected >> mark;) EXPECT_THAT(marks, testing::Contains(mark));
  }
  // Two ways of calls may share a mark, which is named once.
  std::ranges::sort(marks);
  EXPECT_EQ(std::ranges::adjacent_find(marks), marks.end());
}

TEST(ToolCalls, WithoutToolsAllIsText) {
  const Tools tools;
  ToolCallReader reader(tools, /*only_calls=*/false);
  AnswerPieces pieces;
  reader.Push("{<tool_call>", pieces);
  EXPECT_EQ(Join(pieces).text, "{<tool_call>");
}

}  // namespace
}  // namespace godwit::chat::tool_calls_test
