// Api: Anthropic's Messages API.
#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "server/api_test_support.h"

namespace godwit::server::api_messages_test {
namespace {

using testing::HasSubstr;

class ApiMessagesTest : public ApiTest {
 protected:
  static constexpr const char* kPath = "/v1/messages";
  const Json hello_ = {{{"role", "user"}, {"content", "Hello"}}};
};

TEST_F(ApiMessagesTest, AreChats) {
  const Json chat = Post("/v1/chat/completions",
                         {{"messages", {{{"role", "system"}, {"content", "Be brief."}}, hello_[0]}},
                          {"max_tokens", 6}})
                        ->json();
  Json asked{{"system", "Be brief."}, {"messages", hello_}, {"max_tokens", 6}};
  const auto reply = Post(kPath, asked);
  ASSERT_EQ(reply->status(), 200) << reply->body();
  const Json whole = reply->json();
  EXPECT_EQ(whole["type"], "message");
  EXPECT_EQ(whole["model"], "tiny");
  EXPECT_EQ(whole["content"][0]["text"], chat["choices"][0]["message"]["content"]);
  EXPECT_EQ(whole["stop_reason"], "max_tokens");
  const auto prompt_of = [](const Json& usage) {
    return usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>();
  };
  EXPECT_EQ(prompt_of(whole["usage"]), chat["usage"]["prompt_tokens"]);
  const Json counted =
      Post("/v1/messages/count_tokens", {{"system", "Be brief."}, {"messages", hello_}})->json();
  EXPECT_EQ(counted, Json({{"input_tokens", chat["usage"]["prompt_tokens"]}}));

  for (const bool progress : {false, true}) {
    asked["stream"] = true;
    asked["return_progress"] = progress;
    const auto streamed = Post(kPath, asked);
    EXPECT_THAT(streamed->body(),
                testing::ContainsRegex("^id: msg_[0-9a-f]+:0\nevent: message_start\ndata: "));
    const auto events = streamed->chunks();
    std::string text;
    for (const Json& event : events) {
      if (event["type"] == "content_block_delta") text += event["delta"]["text"];
    }
    EXPECT_EQ(text, whole["content"][0]["text"]);
    EXPECT_EQ(prompt_of(events.front()["message"]["usage"]), chat["usage"]["prompt_tokens"]);
    EXPECT_EQ(events[1]["type"], progress ? "godwit.prompt_progress" : "content_block_start");
    EXPECT_EQ(events.back()["type"], "message_stop");
  }
}

TEST_F(ApiMessagesTest, StopSequencesAreNamed) {
  Json asked{{"messages", hello_}, {"max_tokens", 12}};
  const std::string text = Post(kPath, asked)->json()["content"][0]["text"];
  asked["stop_sequences"] = {"zzz", text.substr(4, 3)};
  const Json answer = Post(kPath, asked)->json();
  EXPECT_EQ(answer["stop_reason"], "stop_sequence");
  EXPECT_EQ(answer["stop_sequence"], text.substr(4, 3));
}

TEST_F(ApiMessagesTest, ErrorsAreInItsWords) {
  const auto refused = [](const Answered& reply, int status, const std::string& type) {
    EXPECT_EQ(reply.status(), status) << reply.body();
    const Json body = reply.json();
    EXPECT_EQ(body["type"], "error");
    EXPECT_EQ(body["error"]["type"], type);
    return body["error"];
  };
  EXPECT_THAT(refused(*Post(kPath, {{"messages", hello_}}), 400, "invalid_request_error")["message"]
                  .get<std::string>(),
              HasSubstr("max_tokens"));
  refused(*Ask("GET", kPath), 405, "invalid_request_error");
  refused(*Post("/v1/messages/batches", Json::object()), 404, "not_found_error");
  Json longer = hello_;
  longer[0]["content"] = std::string(100'000, 'a');
  const auto error = refused(*Post(kPath, {{"messages", longer}, {"max_tokens", 5}}), 400,
                             "invalid_request_error");
  EXPECT_EQ(error["code"], "context_length_exceeded");
  const Json counted = Post("/v1/messages/count_tokens", {{"messages", longer}})->json();
  EXPECT_EQ(counted["input_tokens"], error["n_prompt_tokens"]);
}

TEST_F(ApiMessagesTest, AKeyHasAHeaderOfItsOwn) {
  Start({.keys = {"right"}});
  const auto status = [&](const std::string& key, const std::string& bearer = "") {
    const auto reply = std::make_shared<Answered>();
    api_->Handle({.method = "GET", .path = "/v1/models", .authorization = bearer, .api_key = key},
                 reply);
    return reply->status();
  };
  EXPECT_EQ(status("right"), 200);
  EXPECT_EQ(status("wrong"), 401);
  EXPECT_EQ(status("", "Bearer right"), 200);
  EXPECT_EQ(status("any", "Bearer right"), 200);
  EXPECT_EQ(status("right", "Bearer any"), 200);
  EXPECT_EQ(status("any", "Bearer any"), 401);
  EXPECT_EQ(status(""), 401);
  const auto reply = Ask("POST", kPath, "{}");
  EXPECT_EQ(reply->json()["error"]["type"], "authentication_error");
}

}  // namespace
}  // namespace godwit::server::api_messages_test
