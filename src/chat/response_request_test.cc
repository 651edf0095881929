#include "chat/response_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/test_support.h"
#include "chat/response_json.h"

namespace godwit::chat::response_request_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

ResponseRequest Parse(const std::string& fields, const CompletionDefaults& defaults = {}) {
  return ParseResponseRequest(Json::parse("{" + fields + "}"), defaults);
}

std::vector<Message> MessagesOf(const std::string& fields) {
  return std::get<std::vector<Message>>(Parse(fields).completion.prompt);
}

std::string Refusal(const std::string& fields) {
  return ErrorOf(ErrorKind::kInput, [&] { Parse(fields); });
}

TEST(ResponseRequestTest, IsAChat) {
  const auto one = MessagesOf(R"("input": "Hello")");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].role, "user");
  EXPECT_EQ(one[0].content, "Hello");
  const auto messages = MessagesOf(
      R"("instructions": "Be brief.", "input": [
           {"role": "developer", "content": "No jokes."},
           {"type": "message", "role": "user", "content": [
              {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
           {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "c", "annotations": []}]}])");
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[0].content, "Be brief.");
  EXPECT_EQ(messages[1].role, "developer");
  EXPECT_EQ(messages[2].content, "a\nb");
  EXPECT_EQ(messages[3].role, "assistant");
  EXPECT_EQ(messages[3].content, "c");
}

TEST(ResponseRequestTest, TakesTheFieldsOfAChat) {
  const ResponseRequest request =
      Parse(R"("input": "x", "max_output_tokens": 7, "temperature": 0.5, "seed": 3, "stream": true,
               "stop": "y", "store": false, "tools": [], "text": {"format": {"type": "text"}},
               "truncation": "disabled", "previous_response_id": null, "metadata": {"a": "b"},
               "parallel_tool_calls": true, "user": "z", "model": "any")");
  EXPECT_EQ(request.completion.generate.max_tokens, 7);
  EXPECT_EQ(request.completion.generate.sampler.temperature, 0.5f);
  EXPECT_EQ(request.completion.generate.sampler.seed, 3u);
  EXPECT_EQ(request.completion.generate.stop, std::vector<std::string>{"y"});
  EXPECT_TRUE(request.completion.stream);
  EXPECT_EQ(request.metadata, (Json{{"a", "b"}}));
}

TEST(ResponseRequestTest, TakesWhatAgentsSay) {
  const ResponseRequest request =
      Parse(R"("input": "x", "reasoning": {"effort": "low", "summary": "auto"},
               "text": {"verbosity": "medium"}, "prompt_cache_key": "k", "service_tier": "auto",
               "safety_identifier": "s", "store": false, "include": [])");
  EXPECT_EQ(request.completion.template_variables["reasoning_effort"], "low");
}

TEST(ResponseRequestTest, ReadsFormats) {
  const auto schema = [](const std::string& text) {
    return Parse(R"("input": "x", "text": )" + text).completion.generate.json_schema;
  };
  EXPECT_EQ(schema("{}"), "");
  EXPECT_EQ(schema(R"({"format": {"type": "text"}})"), "");
  EXPECT_EQ(schema(R"({"format": {"type": "json_object"}})"), R"({"type": "object"})");
  EXPECT_EQ(schema(R"({"format": {"type": "json_schema", "name": "n", "schema": {"const": 1}}})"),
            R"({"const":1})");
}

TEST(ResponseRequestTest, RefusesByName) {
  for (const char* const field :
       {R"("input": 5)", R"("input": [])", R"("input": [5])", R"("input": [{"role": "user"}])",
        R"("input": [{"type": "function_call_output", "output": "x"}])",
        R"("input": [{"type": "function_call", "call_id": "a", "name": "f"}])",
        R"("input": [{"type": "reasoning", "summary": [{"text": "x"}]}])",
        R"("input": [{"role": "user", "content": [{"type": "input_texts", "text": "x"}]}])"}) {
    EXPECT_THAT(Refusal(field), HasSubstr("\"input\": ")) << field;
  }
  EXPECT_THAT(
      Refusal(R"("input": [{"role": "user", "content": [{"type": "input_image", "text": "x"}]}])"),
      HasSubstr("pictures"));
  EXPECT_THAT(Refusal(""), HasSubstr("\"input\""));
  for (const char* const field :
       {R"("store": true)", R"("background": 1)", R"("truncation": "auto")",
        R"("tools": [{"type": "web_search"}])", R"("text": {"format": {"type": "json_objects"}})",
        R"("text": {"verbosity": "low"})", R"("response_format": {"type": "text"})",
        R"("previous_response_id": "resp_1")", R"("max_output_tokens": -1)", R"("n": 2)",
        R"("messages": [])", R"("instructions": 5)", R"("metadata": "x")",
        R"("reasoning": {"summary": "detailed"})", R"("echo": true)"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_THAT(Refusal(R"("input": "x", )" + std::string(field)), HasSubstr(name)) << field;
  }
  EXPECT_THAT(Refusal(R"("input": "x", "truncation": "SECRET")"), Not(HasSubstr("SECRET")));
  const CompletionDefaults lenient{.lenient = true};
  EXPECT_NO_THROW(Parse(R"("input": "x", "store": true, "reasoning": {}, "n": 1)", lenient));
  EXPECT_THAT(Refusal(R"("input": "x", "store": true)"), HasSubstr("--lenient"));
}

Json WholeOf(const ResponseRequest& request, const GenerateResult& result,
             const CompletionName& name) {
  ResponseEvents events(request, name);
  events.Begin(FormOf("", /*is_token=*/{}));
  return events.Whole(result);
}

TEST(ResponseJsonTest, SaysHowItEnded) {
  const ResponseRequest request = Parse(R"("input": "x", "max_output_tokens": 2)");
  const CompletionName name{.id = "7", .model = "m"};
  GenerateResult result{.text = "ab", .tokens = {1, 2}, .prompt_tokens = 5, .cached_tokens = 4};
  Json json = WholeOf(request, result, name);
  EXPECT_EQ(json["status"], "completed");
  EXPECT_EQ(json["output"][0]["content"][0]["text"], "ab");
  EXPECT_EQ(json["usage"]["input_tokens"], 5);
  EXPECT_EQ(json["usage"]["input_tokens_details"]["cached_tokens"], 4);
  EXPECT_EQ(json["usage"]["total_tokens"], 7);
  result.finish_reason = FinishReason::kLength;
  json = WholeOf(request, result, name);
  EXPECT_EQ(json["status"], "incomplete");
  EXPECT_EQ(json["incomplete_details"]["reason"], "max_output_tokens");
}

// Pieces of a stream, joined, are the whole answer.
TEST(ResponseJsonTest, EventsTellTheSame) {
  const ResponseRequest request = Parse(R"("input": "x")");
  const CompletionName name{.id = "7", .model = "m"};
  ResponseEvents events(request, name);
  events.Begin(FormOf("", /*is_token=*/{}));
  std::vector<Json> all;
  const auto add = [&](const Json& list) { all.insert(all.end(), list.begin(), list.end()); };
  add(events.First());
  add(events.Progress({.done_tokens = 3, .total_tokens = 5, .cached_tokens = 1, .elapsed_ms = 2}));
  add(events.Of({.text = "a"}));
  add(events.Of({.tokens = {7}}));
  add(events.Of({.text = "b"}));
  const GenerateResult result{.text = "ab", .tokens = {1, 7, 2}, .prompt_tokens = 5};
  add(events.Last(result));
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    // Progress, at 2, has the number of the event before it.
    EXPECT_EQ(all[i]["sequence_number"], i < 2 ? i : i - 1);
    if (all[i]["type"] == "response.output_text.delta") text += all[i]["delta"];
  }
  EXPECT_EQ(text, "ab");
  EXPECT_EQ(all.front()["type"], "response.created");
  EXPECT_EQ(all.front()["response"]["status"], "in_progress");
  EXPECT_EQ(all.back()["type"], "response.completed");
  Json whole = WholeOf(request, result, name);
  for (Json* const json : {&whole, &all.back()["response"]}) json->erase("created_at");
  EXPECT_EQ(all.back()["response"], whole);
  const Json failed = events.Failed("no memory");
  EXPECT_EQ(failed[0]["response"]["status"], "failed");
  EXPECT_EQ(failed[0]["response"]["error"]["message"], "no memory");
}

constexpr char kTools[] = R"("tools": [{"type": "function", "name": "f", "strict": true,
    "description": "F.", "parameters": {"type": "object"}}])";

TEST(ResponseRequestTest, TakesTools) {
  const auto parse = [](const std::string& more) {
    return Parse(R"("input": "x", )" + std::string(kTools) + more);
  };
  const ResponseRequest request = parse(R"(, "parallel_tool_calls": false)");
  EXPECT_EQ(request.completion.tools.list[0]["function"]["description"], "F.");
  EXPECT_FALSE(request.completion.parallel_tool_calls);
  EXPECT_EQ(request.completion.generate.json_schema, "");
  const auto forced = parse(R"(, "tool_choice": {"type": "function", "name": "f"})");
  EXPECT_THAT(forced.completion.generate.json_schema, HasSubstr(R"({"const":"f"})"));
  EXPECT_EQ(forced.tool_choice["name"], "f");
  EXPECT_TRUE(parse(R"(, "tool_choice": "none")").completion.tools.list.empty());
  EXPECT_THAT(Refusal(R"("input": "x", "tools": [{"type": "function", "function": {}}])"),
              HasSubstr("\"tools\": "));
  EXPECT_THAT(
      Refusal(R"("input": "x", "tool_choice": {"type": "web_search"}, )" + std::string(kTools)),
      HasSubstr("\"tool_choice\": "));
}

TEST(ResponseRequestTest, TakesCallsBack) {
  const auto messages = MessagesOf(
      R"("input": [{"role": "user", "content": "x"},
           {"type": "reasoning", "id": "rs_1", "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}]},
           {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f",
            "arguments": "{\"x\": 1}", "status": "completed"},
           {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
           {"type": "function_call_output", "call_id": "a", "output": "one"},
           {"type": "function_call_output", "call_id": "b",
            "output": [{"type": "input_text", "text": "two"}]}])");
  ASSERT_EQ(messages.size(), 4u);
  const Json fields = Json::parse(messages[1].fields);
  EXPECT_EQ(messages[1].role, "assistant");
  EXPECT_EQ(fields["reasoning_content"], "Hm.");
  EXPECT_EQ(fields["tool_calls"][0]["function"]["arguments"]["x"], 1);
  EXPECT_EQ(fields["tool_calls"][1]["id"], "b");
  EXPECT_EQ(messages[2].role, "tool");
  EXPECT_EQ(messages[2].content, "one");
  EXPECT_EQ(messages[3].content, "two");
  EXPECT_EQ(Json::parse(messages[3].fields)["tool_call_id"], "b");
}

// Reasoning, text and calls are items, and a stream shows each from its beginning to its end.
TEST(ResponseJsonTest, ItemsOfAnAnswer) {
  const ResponseRequest request = Parse(R"("input": "x", )" + std::string(kTools));
  const CompletionName name{.id = "7", .model = "m"};
  const std::string text =
      R"(<think>Hm.</think>I look. <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)"
      R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)";
  const GenerateResult result{.text = text, .tokens = {1, 2, 3}, .thought_tokens = 2};
  const Json whole = WholeOf(request, result, name);
  const auto check = [](const Json& output) {
    ASSERT_EQ(output.size(), 4u);
    EXPECT_EQ(output[0]["type"], "reasoning");
    EXPECT_EQ(output[0]["content"][0]["text"], "Hm.");
    EXPECT_EQ(output[1]["content"][0]["text"], "I look. ");
    EXPECT_EQ(output[2]["type"], "function_call");
    EXPECT_EQ(output[2]["name"], "f");
    EXPECT_EQ(output[2]["arguments"], R"({"x":1})");
    EXPECT_EQ(output[3]["arguments"], "{}");
    EXPECT_NE(output[2]["call_id"], output[3]["call_id"]);
  };
  check(whole["output"]);
  EXPECT_EQ(whole["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
  EXPECT_EQ(whole["tools"][0]["name"], "f");
  ResponseEvents events(request, name);
  events.Begin(FormOf("", /*is_token=*/{}));
  std::map<int64_t, std::string> deltas;
  std::map<int64_t, Json> done;
  const auto take = [&](const Json& list) {
    for (const Json& event : list) {
      const std::string type = event["type"];
      if (type.ends_with(".delta")) deltas[event["output_index"]] += event["delta"];
      if (type == "response.output_item.done") done[event["output_index"]] = event["item"];
    }
  };
  for (const char c : text) take(events.Of({.text = {c}}));
  const Json last = events.Last(result);
  take(last);
  EXPECT_EQ(deltas, (std::map<int64_t, std::string>{
                        {0, "Hm."}, {1, "I look. "}, {2, R"({"x":1})"}, {3, "{}"}}));
  check(last.back()["response"]["output"]);
  for (const auto& [index, item] : done) {
    EXPECT_EQ(last.back()["response"]["output"][index], item);
  }
  EXPECT_EQ(done.size(), 4u);
}

}  // namespace
}  // namespace godwit::chat::response_request_test
