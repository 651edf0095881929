#include "chat/anthropic_request.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "chat/anthropic_json.h"

namespace godwit::chat::anthropic_request_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

constexpr char kHello[] = R"("max_tokens": 9, "messages": [{"role": "user", "content": "x"}], )";

CompletionRequest Parse(const std::string& fields, const CompletionDefaults& defaults = {}) {
  return ParseAnthropicRequest(Json::parse("{" + fields + "}"), defaults);
}

std::vector<Message> MessagesOf(const std::string& messages, const std::string& more = "") {
  const auto request = Parse(R"("max_tokens": 9, "messages": )" + messages + more);
  return std::get<std::vector<Message>>(request.prompt);
}

std::string Refusal(const std::string& fields, const CompletionDefaults& defaults = {}) {
  try {
    Parse(fields, defaults);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string RefusalBeside(const std::string& fields) { return Refusal(kHello + fields); }

TEST(AnthropicRequestTest, IsAChat) {
  const auto messages = MessagesOf(
      R"([{"role": "user", "content": "a"},
          {"role": "assistant", "content": [
             {"type": "thinking", "thinking": "Hm.", "signature": "s"},
             {"type": "text", "text": "I look.", "citations": null, "parsed_output": {}},
             {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
             {"type": "tool_use", "id": "t2", "name": "f", "input": {}, "partial_json": "{\"x"}]},
          {"role": "user", "content": [
             {"type": "tool_result", "tool_use_id": "t1", "content": "one",
              "cache_control": {"type": "ephemeral"}},
             {"type": "tool_result", "tool_use_id": "t2", "is_error": true,
              "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "lines"}]},
             {"type": "tool_result", "tool_use_id": "t3"},
             {"type": "text", "text": "And?"}]}])",
      R"(, "system": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}])");
  ASSERT_EQ(messages.size(), 7u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[0].content, "Be\nbrief.");
  EXPECT_EQ(messages[1].content, "a");
  EXPECT_EQ(messages[2].role, "assistant");
  EXPECT_EQ(messages[2].content, "I look.");
  const Json fields = Json::parse(messages[2].fields);
  EXPECT_EQ(fields["reasoning_content"], "Hm.");
  EXPECT_EQ(fields["tool_calls"][0]["id"], "t1");
  EXPECT_EQ(fields["tool_calls"][0]["function"]["arguments"], Json({{"x", 1}}));
  EXPECT_EQ(fields["tool_calls"][1]["function"]["arguments"], "{\"x");
  EXPECT_EQ(messages[3].role, "tool");
  EXPECT_EQ(messages[3].content, "one");
  EXPECT_EQ(Json::parse(messages[3].fields)["tool_call_id"], "t1");
  EXPECT_EQ(messages[4].content, "Error:\ntwo\nlines");
  EXPECT_EQ(messages[5].content, "");
  EXPECT_EQ(messages[6].role, "user");
  EXPECT_EQ(messages[6].content, "And?");
}

// A text before the result of a call stays before it.
TEST(AnthropicRequestTest, KeepsTheOrderOfBlocks) {
  const auto messages = MessagesOf(
      R"([{"role": "user", "content": [
            {"type": "text", "text": "a"},
            {"type": "tool_result", "tool_use_id": "t", "content": "b"},
            {"type": "text", "text": "c"}, {"type": "text", "text": "d"}]},
          {"role": "assistant", "content": []}, {"role": "assistant", "content": "begun"}])");
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0].content, "a");
  EXPECT_EQ(messages[1].role, "tool");
  EXPECT_EQ(messages[2].content, "c\nd");
  EXPECT_EQ(messages[3].content, "");
  EXPECT_TRUE(
      Parse(R"("max_tokens": 9, "messages": [{"role": "assistant", "content": "a"}])").continues);
}

TEST(AnthropicRequestTest, TakesItsFields) {
  const auto request = Parse(std::string(kHello) + R"("stop_sequences": ["y"], "temperature": 0.5,
      "top_p": 0.25, "top_k": 3, "stream": true, "metadata": {"user_id": "u"}, "seed": 4,
      "service_tier": "auto", "cache_control": {"type": "ephemeral"}, "model": "any",
      "thinking": {"type": "enabled", "budget_tokens": 1024}, "mcp_servers": [], "system": null,
      "tools": [{"name": "f", "description": "F.", "type": "custom",
                 "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}],
      "tool_choice": {"type": "auto", "disable_parallel_tool_use": true})");
  EXPECT_EQ(request.generate.max_tokens, 9);
  EXPECT_EQ(request.generate.stop, std::vector<std::string>{"y"});
  EXPECT_EQ(request.generate.sampler.top_k, 3);
  EXPECT_EQ(request.generate.sampler.seed, 4u);
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.template_variables["enable_thinking"], true);
  EXPECT_EQ(request.template_variables["reasoning_effort"], "low");
  EXPECT_FALSE(request.parallel_tool_calls);
  EXPECT_EQ(request.tools.list[0]["function"]["description"], "F.");
  EXPECT_EQ(request.tools.list[0]["function"]["parameters"]["type"], "object");
  EXPECT_EQ(request.generate.json_schema, "");
  const auto with = [](const std::string& fields) { return Parse(kHello + fields); };
  const std::string tools = R"("tools": [{"name": "f", "input_schema": {}}], "tool_choice": )";
  EXPECT_TRUE(with(tools + R"({"type": "none"})").tools.list.empty());
  EXPECT_THAT(with(tools + R"({"type": "any"})").generate.json_schema, HasSubstr("array"));
  EXPECT_THAT(with(tools + R"({"type": "tool", "name": "f"})").generate.json_schema,
              HasSubstr(R"({"const":"f"})"));
  EXPECT_EQ(with(R"("thinking": {"type": "disabled"})").template_variables["enable_thinking"],
            false);
  for (
      const char* const fields :
      {R"("thinking": {"type": "enabled", "budget_tokens": 1}, "output_config": {"effort": "high"})",
       R"("output_config": {"effort": "high"}, "thinking": {"type": "enabled", "budget_tokens": 1})"}) {
    EXPECT_EQ(with(fields).template_variables["reasoning_effort"], "high");
  }
  EXPECT_FALSE(
      with(R"("thinking": {"type": "adaptive"})").template_variables.contains("enable_thinking"));
  const auto own = with(R"("thinking": {"type": "enabled", "budget_tokens": 9000},
                           "chat_template_kwargs": {"enable_thinking": 5})");
  EXPECT_EQ(own.template_variables["enable_thinking"], 5);
  EXPECT_EQ(own.template_variables["reasoning_effort"], "high");
  const auto schema = with(R"("output_config": {"effort": "max",
      "format": {"type": "json_schema", "schema": {"type": "array"}}})");
  EXPECT_EQ(Json::parse(schema.generate.json_schema)["type"], "array");
  EXPECT_EQ(schema.template_variables["reasoning_effort"], "xhigh");
  EXPECT_NO_THROW(ParseAnthropicRequest(
      Json::parse(R"({"messages": [{"role": "user", "content": "x"}]})"), {}, /*for_count=*/true));
}

TEST(AnthropicRequestTest, RefusesWhatItCannotDoByItsName) {
  EXPECT_THAT(Refusal(R"("messages": [{"role": "user", "content": "x"}])"),
              HasSubstr("needs \"max_tokens\""));
  EXPECT_THAT(Refusal(R"("max_tokens": 5)"), HasSubstr("\"messages\": expected a list"));
  for (const char* const field :
       {R"("stop_sequences": "x")",
        R"("stop_sequences": [5])",
        R"("n": 1)",
        R"("stop": "x")",
        R"("thinking": {"type": "on"})",
        R"("thinking": {"type": "disabled", "budget_tokens": 1})",
        R"("thinking": {"type": "enabled", "budget_tokens": "x"})",
        R"("thinking": "x")",
        R"("tool_choice": "auto")",
        R"("tool_choice": {"type": "any", "name": "f"})",
        R"("tool_choice": {"type": "all"})",
        R"("tools": {})",
        R"("tools": [5])",
        R"("tools": [{"type": "web_search_20250305", "name": "web_search"}])",
        R"("tools": [{"input_schema": {}}])",
        R"("system": 5)",
        R"("system": [{"type": "tool_result", "tool_use_id": "x"}])",
        R"("service_tier": "fast")",
        R"("mcp_servers": [{"url": "x"}])",
        R"("container": "x")",
        R"("output_config": {"a": 1})",
        R"("output_config": {"format": {"type": "text"}})",
        R"("reasoning_effort": "low")"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_THAT(RefusalBeside(field), HasSubstr("\"" + name + "\"")) << field;
  }
  EXPECT_NO_THROW(Parse(std::string(kHello) + R"("n": 1, "container": "x")", {.lenient = true}));
}

TEST(AnthropicRequestTest, RefusesBlocksThatItCannotRead) {
  const auto refusal = [](const std::string& role, const std::string& block) {
    return Refusal(R"("max_tokens": 5, "messages": [{"role": ")" + role + R"(", "content": [)" +
                   block + "]}]");
  };
  EXPECT_THAT(refusal("user", R"({"type": "image", "source": {"data": "SECRET"}})"),
              HasSubstr("pictures, sounds and files are not supported"));
  EXPECT_THAT(refusal("user", R"({"type": "document", "source": {"data": "SECRET"}})"),
              HasSubstr("pictures, sounds and files are not supported"));
  EXPECT_THAT(refusal("user", R"({"type": "tool_result", "tool_use_id": "t",
                                  "content": [{"type": "image"}]})"),
              HasSubstr("pictures, sounds and files are not supported"));
  for (const char* const block :
       {"5", "\"x\"", R"({"text": "SECRET"})", R"({"type": "redacted_thinking", "data": "SECRET"})",
        R"({"type": "text"})", R"({"type": "text", "text": 5})",
        R"({"type": "text", "text": "SECRET", "more": 1})",
        R"({"type": "text", "text": "x", "": 1})", R"({"type": "tool_use", "id": "t"})",
        R"({"type": "tool_result", "content": "SECRET"})", R"({"type": "thinking"})",
        R"({"type": "tool_result", "tool_use_id": "t", "is_error": "SECRET"})",
        R"({"type": "tool_result", "tool_use_id": "t", "content": 5})"}) {
    EXPECT_THAT(refusal("user", block),
                AllOf(HasSubstr("\"messages\": "), Not(HasSubstr("SECRET"))))
        << block;
  }
  EXPECT_THAT(refusal("user", R"({"type": "tool_use", "id": "t", "name": "f", "input": {}})"),
              HasSubstr("in messages of the assistant"));
  EXPECT_THAT(refusal("assistant", R"({"type": "tool_use", "id": "t", "name": "f", "input": 5})"),
              HasSubstr("with an \"input\""));
  EXPECT_THAT(Refusal(R"("max_tokens": 5, "messages": [{"role": "user", "content": "x", "a": 1}])"),
              HasSubstr("unknown field \"a\""));
}

constexpr char kText[] =
    R"(<think>Hm.</think>I look. <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)"
    R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)";

CompletionRequest WithTool() {
  return Parse(std::string(kHello) + R"("tools": [{"name": "f", "input_schema": {}}])");
}

Json WholeOf(const CompletionRequest& request, const GenerateResult& result) {
  const CompletionName name{.id = "7", .model = "m"};
  AnthropicEvents events(request, name);
  events.Begin(FormOf("", /*is_token=*/{}));
  return events.Whole(result);
}

TEST(AnthropicJsonTest, BlocksOfAnAnswer) {
  const auto request = WithTool();
  const GenerateResult result{.text = kText,
                              .tokens = {1, 2, 3},
                              .thought_tokens = 2,
                              .prompt_tokens = 9,
                              .cached_tokens = 4};
  const Json whole = WholeOf(request, result);
  const Json& content = whole["content"];
  ASSERT_EQ(content.size(), 4u);
  EXPECT_EQ(content[0], Json({{"type", "thinking"}, {"thinking", "Hm."}, {"signature", ""}}));
  EXPECT_EQ(content[1], Json({{"type", "text"}, {"text", "I look. "}}));
  EXPECT_EQ(content[2]["name"], "f");
  EXPECT_EQ(content[2]["input"], Json({{"x", 1}}));
  EXPECT_EQ(content[3]["input"], Json::object());
  EXPECT_NE(content[2]["id"], content[3]["id"]);
  EXPECT_EQ(whole["stop_reason"], "tool_use");
  EXPECT_EQ(whole["usage"]["input_tokens"], 5);
  EXPECT_EQ(whole["usage"]["cache_read_input_tokens"], 4);
  EXPECT_EQ(whole["usage"]["output_tokens"], 3);
  EXPECT_EQ(whole["usage"]["output_tokens_details"]["thinking_tokens"], 2);
}

// A stream of single bytes gives the same as the whole answer.
TEST(AnthropicJsonTest, EventsTellTheSame) {
  const auto request = WithTool();
  const GenerateResult result{.text = kText, .tokens = {1, 2}, .prompt_tokens = 9};
  const CompletionName name{.id = "7", .model = "m"};
  AnthropicEvents stream(request, name);
  stream.Begin(FormOf("", /*is_token=*/{}));
  std::vector<Json> events;
  const auto add = [&](const Json& list) { events.insert(events.end(), list.begin(), list.end()); };
  add(stream.First());
  add(stream.Of({.progress = PromptProgress{9, 9, 4, 1}}));
  for (const char c : std::string(kText)) add(stream.Of({.text = {c}}));
  add(stream.Last(result));
  EXPECT_EQ(events.front()["type"], "message_start");
  EXPECT_EQ(events.front()["message"]["usage"]["input_tokens"], 5);
  EXPECT_EQ(events.front()["message"]["usage"]["cache_read_input_tokens"], 4);
  Json content = Json::array();
  std::string input;
  size_t ended = 0;
  for (const Json& event : events) {
    if (event["type"] == "content_block_start") {
      EXPECT_EQ(event["index"], content.size());
      EXPECT_EQ(ended, content.size()) << "one at a time";
      content.push_back(event["content_block"]);
      input.clear();
    } else if (event["type"] == "content_block_delta") {
      EXPECT_EQ(event["index"], content.size() - 1);
      const Json& delta = event["delta"];
      if (delta["type"] == "input_json_delta") {
        input += delta["partial_json"];
      } else {
        const std::string field = delta["type"] == "text_delta" ? "text" : "thinking";
        content.back()[field] =
            content.back()[field].get<std::string>() + delta[field].get<std::string>();
      }
    } else if (event["type"] == "content_block_stop") {
      ++ended;
      if (!input.empty()) content.back()["input"] = Json::parse(input);
    }
  }
  EXPECT_EQ(ended, 4u);
  Json expected = WholeOf(request, result)["content"];
  for (Json* const blocks : {&content, &expected}) {
    for (Json& block : *blocks) block.erase("id");
  }
  EXPECT_EQ(content, expected);
  const Json& last = events[events.size() - 2];
  EXPECT_EQ(last["type"], "message_delta");
  EXPECT_EQ(last["delta"]["stop_reason"], "tool_use");
  EXPECT_EQ(last["usage"]["output_tokens"], 2);
  EXPECT_EQ(events.back()["type"], "message_stop");
}

TEST(AnthropicJsonTest, SaysHowItEnded) {
  const auto request = WithTool();
  GenerateResult result{.text = "ab", .tokens = {1}};
  EXPECT_EQ(WholeOf(request, result)["stop_reason"], "end_turn");
  result.stop = "c";
  EXPECT_EQ(WholeOf(request, result)["stop_reason"], "stop_sequence");
  EXPECT_EQ(WholeOf(request, result)["stop_sequence"], "c");
  result.stop.clear();
  result.finish_reason = FinishReason::kContextFull;
  EXPECT_EQ(WholeOf(request, result)["stop_reason"], "model_context_window_exceeded");
  result.finish_reason = FinishReason::kLength;
  result.text = R"(<tool_call>{"name": "f", "arguments": {"x": "lo)";
  const Json cut = WholeOf(request, result);
  EXPECT_EQ(cut["stop_reason"], "max_tokens");
  EXPECT_EQ(cut["content"][0]["input"], Json::object());
  EXPECT_EQ(cut["content"][0]["partial_json"], R"({"x":"lo)");
  result.text.clear();
  EXPECT_EQ(WholeOf(request, result)["content"], Json::array());
}

}  // namespace
}  // namespace godwit::chat::anthropic_request_test
