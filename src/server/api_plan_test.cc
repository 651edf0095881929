// Api: the price before.
#include <gmock/gmock.h>

#include <string>

#include "server/api_test_support.h"

namespace godwit::server::api_plan_test {
namespace {

using testing::HasSubstr;
using ApiPlanTest = ApiTest;

const Json kChat = {{"messages", {{{"role", "user"}, {"content", "Hello, who are you?"}}}}};

TEST_F(ApiPlanTest, AllApisHavePlans) {
  for (const Json& body : {Json{{"prompt", Prompt(1, 100)}}, kChat, Json{{"input", "Hello"}}}) {
    const auto reply = Post("/v1/plan", body);
    ASSERT_EQ(reply->status(), 200) << reply->body();
    const Json plan = reply->json();
    EXPECT_EQ(plan["object"], "plan");
    ASSERT_EQ(plan["plans"].size(), 2u) << plan.dump(1);
    EXPECT_EQ(plan["plans"][0]["kv"], "dense");
    EXPECT_EQ(plan["plans"][0]["draft"], "");
    EXPECT_EQ(plan["plans"][1]["draft"], "ngram");
    // The engine may have answered another test with drafts.
    EXPECT_TRUE(plan["plans"][1]["draft_measured"].is_boolean());
    EXPECT_GT(plan["plans"][0]["kv_bytes"], 0);
    EXPECT_GT(plan["plans"][0]["token_s"], 0);
  }
  EXPECT_EQ(MessageOf(*Post("/v1/plan", {{"promt", "x"}}), 400),
            "unknown field \"promt\" (did you mean \"prompt\"?); --lenient ignores it");
}

TEST_F(ApiPlanTest, APlanNamesWhatIsCached) {
  Start(
      {.defaults = {.kv_choices = {"dense", "sinks:4+60"}, .prefill_choices = {"", "window:32"}}});
  const Json body{{"prompt", Prompt(7, 200)}};
  EXPECT_EQ(Post("/v1/plan", body)->json()["plans"][0]["cached_tokens"], 0);
  ASSERT_EQ(Post("/v1/completions", body)->status(), 200);
  const Json plans = Post("/v1/plan", body)->json()["plans"];
  ASSERT_EQ(plans.size(), 5u);
  EXPECT_EQ(
      plans[0]["cached_tokens"],
      Post("/v1/completions", body)->json()["usage"]["prompt_tokens_details"]["cached_tokens"]);
  EXPECT_GT(plans[0]["cached_tokens"], 0);
  EXPECT_EQ(plans[1]["prefill"], "window:32");
  EXPECT_EQ(plans[1]["cached_tokens"], 0) << "read in another way";
  EXPECT_EQ(plans[2]["kv"], "sinks:4+60");
}

TEST_F(ApiPlanTest, AnAnswerTellsThePlanThatItKeeps) {
  Json body = kChat;
  body["first_token_within_s"] = 1000;
  EXPECT_EQ(Post("/v1/chat/completions", body)->json()["usage"]["plan"]["kv"], "dense");
  body["stream"] = true;
  const auto chunks = Post("/v1/chat/completions", body)->chunks();
  EXPECT_EQ(chunks[chunks.size() - 2]["usage"]["plan"]["kv"], "dense");
  const Json response =
      Post("/v1/responses", {{"input", "Hi"}, {"first_token_within_s", 1000}})->json();
  EXPECT_EQ(response["usage"]["plan"]["kv"], "dense") << response.dump(1);
  Json message = kChat;
  message.update({{"first_token_within_s", 1000}, {"max_tokens", 4}});
  EXPECT_EQ(Post("/v1/messages", message)->json()["usage"]["plan"]["kv"], "dense");
}

TEST_F(ApiPlanTest, ARequestThatCannotKeepItIsRefusedWithThePlan) {
  Json body = kChat;
  body["first_token_within_s"] = 1e-7;
  const auto reply = Post("/v1/chat/completions", body);
  EXPECT_THAT(MessageOf(*reply, 400), HasSubstr("the first token would come after "));
  const Json error = reply->json()["error"];
  EXPECT_EQ(error["code"], "first_token_too_late");
  EXPECT_EQ(error["plan"]["plans"][0]["kv"], "dense");
  EXPECT_TRUE(error["plan"]["chosen"].is_null());
  api_->Drain();
  EXPECT_EQ(served_.back().status, 400);
}

TEST_F(ApiPlanTest, WordsOfOtherTextsNeedKeys) {
  const Json body{{"prompt", Prompt(9, 200)}, {"explain_cache", true}};
  EXPECT_THAT(MessageOf(*Post("/v1/completions", body), 400), HasSubstr("needs keys"));
  Start({.keys = {"one", "two"}});
  const auto cause = [&](const Json& prompt, const std::string& key) {
    const auto reply =
        Post("/v1/completions", {{"prompt", prompt}, {"explain_cache", true}}, "Bearer " + key);
    EXPECT_EQ(reply->status(), 200) << reply->body();
    return reply->json()["usage"]["prefix"];
  };
  auto other = Prompt(9, 200);
  other[150] = 5;
  EXPECT_EQ(cause(Prompt(9, 200), "one")["cause"], "no text in memory begins as this prompt does");
  EXPECT_EQ(cause(other, "two")["cause"], "no text in memory begins as this prompt does");
  const Json told = cause(other, "one");
  EXPECT_EQ(told["alike_tokens"], 150);
  EXPECT_TRUE(told.contains("cause"));
  EXPECT_NE(told["prompt"], told["cache"]);
}

}  // namespace
}  // namespace godwit::server::api_plan_test
