// Api: answers to conversations.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "server/api_test_support.h"

namespace godwit::server::api_chats_test {
namespace {

using testing::HasSubstr;
using ApiChatsTest = ApiTest;

TEST_F(ApiChatsTest, RolesAreKnown) {
  const auto ask = [&](const char* role) {
    return Post(
        "/v1/chat/completions",
        {{"messages", {{{"role", "user"}, {"content", "a"}}, {{"role", role}, {"content", "b"}}}}});
  };
  EXPECT_THAT(MessageOf(*ask("robot"), 400),
              HasSubstr("expected the role \"system\", \"developer\", \"user\""));
  const auto prompt_of = [&](const char* role) {
    return Post("/apply-template", {{"messages", {{{"role", role}, {"content", "b"}}}}})
        ->json()["prompt"];
  };
  EXPECT_EQ(prompt_of("developer"), prompt_of("system"));
  EXPECT_EQ(prompt_of("function"), prompt_of("tool"));
}

// An assistant's last message is continued, as if the model had written its beginning.
TEST_F(ApiChatsTest, ABegunMessageIsContinued) {
  const Json user{{"role", "user"}, {"content", "Hello"}};
  const Json begun{{"role", "assistant"}, {"content", " Once upon  "}};
  const auto prompt_of = [&](const Json& messages) {
    return Post("/apply-template", {{"messages", messages}})->json()["prompt"].get<std::string>();
  };
  const std::string prompt = prompt_of({user, begun});
  EXPECT_EQ(prompt, prompt_of(Json::array({user})) + "Once upon  ");
  EXPECT_EQ(prompt_of({user, {{"role", "assistant"}, {"content", " "}}}),
            prompt_of(Json::array({user})));
  const Json chat = Post("/v1/chat/completions", {{"messages", {user, begun}}})->json();
  const auto tokens = TinyEngine().Tokenize(prompt, /*add_special=*/false);
  const auto expected = TinyEngine().NewSession({}).Generate(tokens, Greedy(8));
  EXPECT_EQ(chat["choices"][0]["message"]["content"], expected.text);
  EXPECT_EQ(chat["usage"]["prompt_tokens"], tokens.size());
  const Json answered =
      Post("/apply-template", {{"messages", {user, begun}}, {"continue_final_message", false}})
          ->json();
  EXPECT_THAT(answered["prompt"].get<std::string>(),
              testing::EndsWith("<|im_end|>\n<|im_start|>assistant\n"));
}

TEST_F(ApiChatsTest, ChatsNeedATemplate) {
  const Json body{{"messages", {{{"role", "user"}, {"content", "Hello"}}}}, {"max_tokens", 3}};
  const auto reply = Post("/v1/chat/completions", body);
  if (!TinyEngine().has_chat_template()) {
    EXPECT_THAT(MessageOf(*reply, 400), HasSubstr("template"));
    return;
  }
  EXPECT_EQ(reply->json()["choices"][0]["message"]["role"], "assistant");
}

// The Responses API names the same answer in newer words.
TEST_F(ApiChatsTest, ResponsesAreChats) {
  const Json chat{{"messages", {{{"role", "user"}, {"content", "Hello"}}}}};
  Json asked{{"input", "Hello"}, {"metadata", {{"a", "b"}}}};
  const Json expected = Post("/v1/chat/completions", chat)->json();
  const auto reply = Post("/v1/responses", asked);
  ASSERT_EQ(reply->status(), 200) << reply->body();
  const Json response = reply->json();
  EXPECT_EQ(response["output"][0]["content"][0]["text"],
            expected["choices"][0]["message"]["content"]);
  EXPECT_EQ(response["metadata"], asked["metadata"]);
  EXPECT_EQ(response["usage"]["input_tokens"], expected["usage"]["prompt_tokens"]);
  asked["stream"] = true;
  asked["return_progress"] = true;
  const auto events = Post("/v1/responses", asked)->chunks();
  EXPECT_EQ(events.front()["type"], "response.created");
  EXPECT_EQ(events.back()["response"]["output"][0]["content"], response["output"][0]["content"]);
  EXPECT_THAT(MessageOf(*Post("/v1/responses", {{"input", "x"}, {"store", true}}), 400),
              HasSubstr("\"store\": expected false"));
}

// Answers with a template that supports tools, and that begins reasoning on demand.
class ThinkingApiTest : public ApiTest {
 protected:
  ThinkingApiTest() {
    const auto file =
        folder_.Write("template.jinja",
                      "{% if tools %}{{ tools | tojson }}{% endif %}"
                      "{% for message in messages %}{{ message.content }}\n{% endfor %}"
                      "{% if thinks %}<think>\n{% endif %}");
    engine_.emplace(kTiny, LoadOptions{.threads = 1, .chat_template = file.string()});
    Start({}, *engine_);
  }
  ~ThinkingApiTest() override { api_.reset(); }

  // Deltas of a stream that have this field.
  std::vector<Json> Deltas(Json body, const std::string& field) {
    body["stream"] = true;
    std::vector<Json> deltas;
    for (const Json& chunk : Post("/v1/chat/completions", body)->chunks()) {
      if (!chunk.is_object() || chunk["choices"].empty()) continue;
      const Json& delta = chunk["choices"][0]["delta"];
      if (delta.contains(field)) deltas.push_back(delta[field]);
    }
    return deltas;
  }

  TempFolder folder_;
  std::optional<Engine> engine_;
};

TEST_F(ThinkingApiTest, ThoughtsAreToldApart) {
  Json body{{"messages", {{{"role", "user"}, {"content", "Hello"}}}}};
  body["chat_template_kwargs"] = {{"thinks", true}};
  const Json answer = Post("/v1/chat/completions", body)->json();
  const Json& message = answer["choices"][0]["message"];
  const std::string thought = message["reasoning_content"];
  EXPECT_NE(thought, "");
  EXPECT_EQ(message["content"], "");
  EXPECT_EQ(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 8);
  std::string streamed;
  for (const Json& delta : Deltas(body, "reasoning_content")) streamed += delta;
  EXPECT_EQ(streamed, thought);
  const Json asked{{"input", "Hello"}, {"chat_template_kwargs", {{"thinks", true}}}};
  const Json response = Post("/v1/responses", asked)->json();
  EXPECT_EQ(response["output"][0]["type"], "reasoning");
  EXPECT_EQ(response["output"][0]["content"][0]["text"], thought);
  EXPECT_EQ(response["usage"]["output_tokens_details"]["reasoning_tokens"], 8);
  body["chat_template_kwargs"] = {{"thinks", false}};
  const Json free = Post("/v1/chat/completions", body)->json();
  EXPECT_FALSE(free["choices"][0]["message"].contains("reasoning_content"));
  EXPECT_EQ(free["usage"]["completion_tokens_details"]["reasoning_tokens"], 0);
}

struct SchemaCase {
  const char* schema;
  std::function<bool(const Json&)> holds;
};
bool IsLike(const Json& value, const char* pattern) {
  return value.is_string() && std::regex_match(value.get<std::string>(), std::regex(pattern));
}

// Answers and tool arguments follow their schema, or the request is refused.
TEST_F(ThinkingApiTest, AnswersAreOfTheirSchemas) {
  const auto length = [](const Json& value) { return value.get<std::string>().size(); };
  std::string names = R"({"type": "object", "required": ["a"], "properties": {"a": {"enum": [)";
  for (int i = 0; i < 2500; ++i) names += fmt::format("{}\"name {}\"", i == 0 ? "" : ",", i);
  names += "]}}}";
  const SchemaCase cases[] = {
      {R"({"type": "object", "required": ["a"], "properties":
           {"a": {"type": "string", "pattern": "^[a-c]{2,4}-[0-9]{3}$"}}})",
       [](const Json& json) { return IsLike(json["a"], "[a-c]{2,4}-[0-9]{3}"); }},
      {R"({"type": "object", "required": ["a"], "properties":
           {"a": {"type": "string", "minLength": 3, "maxLength": 5, "pattern": "^[a-z]*$"}}})",
       [&](const Json& json) { return length(json["a"]) >= 3 && IsLike(json["a"], "[a-z]{3,5}"); }},
      {R"({"type": "object", "required": ["a"], "properties":
           {"a": {"type": "string", "minLength": 1, "maxLength": 3000}}})",
       [&](const Json& json) { return length(json["a"]) >= 1; }},
      {names.c_str(), [](const Json& json) { return IsLike(json["a"], "name [0-9]{1,4}"); }},
      {R"({"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "minItems": 1,
           "maxItems": 2, "items": {"type": "object", "required": ["b"], "properties":
           {"b": {"type": "object", "required": ["c"], "properties":
           {"c": {"anyOf": [{"type": "null"}, {"enum": [1, "x"]}]}}}}}}}})",
       [](const Json& json) {
         for (const Json& item : json["a"]) {
           const Json& c = item["b"]["c"];
           if (!c.is_null() && c != 1 && c != "x") return false;
         }
         return json["a"].size() == 1 || json["a"].size() == 2;
       }},
  };
  Json body{{"messages", {{{"role", "user"}, {"content", "Hello"}}}},
            {"ignore_eos", false},
            {"temperature", 1},
            {"max_tokens", 100}};
  int whole = 0;
  const auto check = [&](const SchemaCase& one, const Json& choice, const Json& text) {
    if (choice["finish_reason"] == "length") return;
    ++whole;
    EXPECT_TRUE(one.holds(Json::parse(text.get<std::string>()))) << text;
  };
  for (const SchemaCase& one : cases) {
    const Json schema = Json::parse(one.schema);
    for (const int seed : {1, 2}) {
      body["seed"] = seed;
      Json answered = body, called = body;
      answered["response_format"] = {{"type", "json_schema"},
                                     {"json_schema", {{"name", "x"}, {"schema", schema}}}};
      const Json choice = Post("/v1/chat/completions", answered)->json()["choices"][0];
      check(one, choice, choice["message"]["content"]);
      const Json function{{"name", "f"}, {"parameters", schema}};
      called["tools"] = {{{"type", "function"}, {"function", function}}};
      called["tool_choice"] = "required";
      const auto reply = Post("/v1/chat/completions", called);
      if (schema.dump().size() > 10'000) {  // the template shows it to the model
        EXPECT_EQ(reply->json()["error"]["code"], "context_length_exceeded");
        continue;
      }
      ASSERT_EQ(reply->status(), 200) << reply->body();
      const Json told = reply->json()["choices"][0];
      if (told["finish_reason"] == "length") continue;
      check(one, told, told["message"]["tool_calls"][0]["function"]["arguments"]);
    }
  }
  EXPECT_GT(whole, 5) << "of 18";
  body["response_format"] = {
      {"type", "json_schema"},
      {"json_schema",
       {{"name", "x"}, {"schema", {{"type", "string"}, {"pattern", "(?=a)b(?!c)"}}}}}};
  EXPECT_THAT(MessageOf(*Post("/v1/chat/completions", body), 400), HasSubstr("schema"));
}

// The text is too long for two pieces, whatever a processor's rounding makes the model write.
TEST_F(ThinkingApiTest, CallsComePieceByPiece) {
  const Json text = {{"type", "string"}, {"minLength", 40}, {"maxLength", 60}};
  const Json parameters = {{"type", "object"},
                           {"properties", {{"x", text}}},
                           {"required", {"x"}},
                           {"additionalProperties", false}};
  const Json function = {{"name", "look"}, {"parameters", parameters}};
  Json body{{"messages", {{{"role", "user"}, {"content", "Hello"}}}},
            {"tools", {{{"type", "function"}, {"function", function}}}},
            {"tool_choice", {{"type", "function"}, {"function", {{"name", "look"}}}}},
            {"ignore_eos", false},
            {"temperature", 1},
            {"seed", 3},
            {"max_tokens", 120}};
  const Json answer = Post("/v1/chat/completions", body)->json();
  const Json& call = answer["choices"][0]["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "look");
  const auto deltas = Deltas(body, "tool_calls");
  ASSERT_GT(deltas.size(), 2u);
  EXPECT_EQ(deltas[0][0]["function"]["name"], "look");
  std::string arguments;
  for (const Json& delta : deltas) {
    ASSERT_EQ(delta.size(), 1u);
    EXPECT_EQ(delta[0]["index"], 0);
    EXPECT_EQ(delta[0].contains("id"), &delta == &deltas[0]);
    arguments += delta[0]["function"]["arguments"];
  }
  EXPECT_EQ(arguments, call["function"]["arguments"]);
  Json flat = function;
  flat["type"] = "function";
  body["input"] = "Hello";
  body["tools"] = Json::array({flat});
  body["tool_choice"] = {{"type", "function"}, {"name", "look"}};
  body["max_output_tokens"] = 120;
  for (const char* const field : {"messages", "max_tokens"}) body.erase(field);
  const auto response = Post("/v1/responses", body);
  ASSERT_EQ(response->status(), 200) << response->body();
  const Json item = response->json()["output"][0];
  EXPECT_EQ(item["type"], "function_call");
  EXPECT_EQ(item["name"], "look");
  EXPECT_THAT(item["arguments"].get<std::string>(), testing::StartsWith("{\"x\":"));
}

}  // namespace
}  // namespace godwit::server::api_chats_test
