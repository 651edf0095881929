// Api: passages that are read once for all prompts.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "server/api_test_support.h"

namespace godwit::server::api_passages_test {
namespace {

using testing::HasSubstr;
using ApiPassagesTest = ApiTest;

// Passages of more than a page of 64 tokens, which are different from each other.
std::string Passage(int which) {
  std::string text;
  for (int i = 0; i < 12; ++i) text += "Bird " + std::to_string(which * 100 + i) + " sang. ";
  return text;
}

Json Parts(const std::vector<int>& passages, const char* type = "text") {
  Json parts = Json::array();
  for (const int which : passages) parts.push_back({{"type", type}, {"text", Passage(which)}});
  parts.push_back({{"type", type}, {"text", "Who sang?"}});
  return parts;
}

Json Chat(const std::vector<int>& passages, const Json& fields = Json::object()) {
  Json body{{"messages", {{{"role", "user"}, {"content", Parts(passages)}}}},
            {"max_tokens", 12},
            {"ignore_eos", true},
            {"return_token_ids", true}};
  body.update(fields);
  return body;
}

const Json kOn{{"passages", {{"read_anew", 4}}}};

TEST_F(ApiPassagesTest, AreReadOnceAndLabelled) {
  const Engine engine(kTiny, {.threads = 1}), other(kTiny, {.threads = 1});
  Start({}, other);
  const auto ask = [&](const std::vector<int>& passages, const Json& fields) {
    const auto reply = Post("/v1/chat/completions", Chat(passages, fields));
    EXPECT_EQ(reply->status(), 200) << reply->body();
    return reply->json();
  };
  const Json plain = ask({3, 1, 2}, Json::object());
  EXPECT_FALSE(plain["usage"].contains("passages"));
  Start({}, engine);
  const Json first = ask({1, 2, 3}, kOn);
  const Json label = first["usage"]["passages"];
  EXPECT_EQ(label["exact"], false) << first.dump(1);
  EXPECT_EQ(label["anew_tokens"], 8);
  EXPECT_GT(label["reused_tokens"], 128);
  EXPECT_LT(label["cached_tokens"], 64) << "the head of the template at most";
  EXPECT_EQ(first["usage"]["prompt_tokens_details"]["cached_tokens"], label["cached_tokens"]);

  // In another order, each is found, and the answer is that of a server that has read nothing.
  const Json turned = ask({2, 3, 1}, kOn);
  EXPECT_GE(turned["usage"]["passages"]["cached_tokens"].get<int>() + 8,
            label["reused_tokens"].get<int>());
  EXPECT_LT(turned["timings"]["prompt_n"], first["timings"]["prompt_n"]);
  // Nothing of it reaches a prompt that is read as a whole.
  EXPECT_EQ(ask({3, 1, 2}, Json::object())["choices"][0]["token_ids"],
            plain["choices"][0]["token_ids"]);
  EXPECT_EQ(ask({1}, kOn)["usage"]["passages"]["exact"], true);

  const Engine fresh(kTiny, {.threads = 1});
  Start({}, fresh);
  EXPECT_EQ(ask({2, 3, 1}, kOn)["choices"][0]["token_ids"], turned["choices"][0]["token_ids"]);
  EXPECT_EQ(ask({1, 2, 3}, kOn)["choices"][0]["token_ids"], first["choices"][0]["token_ids"]);
}

TEST_F(ApiPassagesTest, OtherKeysDoNotLearnOfThem) {
  const Engine engine(kTiny, {.threads = 1});
  Start({.keys = {"one", "two"}}, engine);
  const auto cached = [&](const std::string& key) {
    return Post("/v1/chat/completions", Chat({1, 2}, kOn), "Bearer " + key)
        ->json()["usage"]["passages"]["cached_tokens"]
        .get<int>();
  };
  EXPECT_LT(cached("one"), 64);
  EXPECT_LT(cached("two"), 64);
  EXPECT_GT(cached("one"), 128);
}

TEST_F(ApiPassagesTest, AllApisAndStreamsHaveThem) {
  const Json whole = Post("/v1/chat/completions", Chat({1, 2}, kOn))->json();
  const Json label = whole["usage"]["passages"];
  Json fields = kOn;
  fields["stream"] = true;
  const auto chunks = Post("/v1/chat/completions", Chat({1, 2}, fields))->chunks();
  Json tokens = Json::array();
  for (const Json& chunk : chunks) {
    if (!chunk.is_object() || chunk["choices"].empty()) continue;
    for (const Json& id : chunk["choices"][0].value("token_ids", Json::array())) {
      tokens.push_back(id);
    }
  }
  EXPECT_EQ(tokens, whole["choices"][0]["token_ids"]);
  const auto same = [&](const Json& usage) {
    EXPECT_EQ(usage["passages"]["reused_tokens"], label["reused_tokens"]) << usage.dump(1);
    EXPECT_EQ(usage["passages"]["exact"], false);
  };
  same(chunks[chunks.size() - 2]["usage"]);

  const std::string text = whole["choices"][0]["message"]["content"];
  Json response{{"input", {{{"role", "user"}, {"content", Parts({1, 2}, "input_text")}}}},
                {"max_output_tokens", 12},
                {"ignore_eos", true}};
  response.update(kOn);
  const Json responded = Post("/v1/responses", response)->json();
  EXPECT_EQ(responded["output"][0]["content"][0]["text"], text) << responded.dump(1);
  same(responded["usage"]);
  Json message{{"messages", {{{"role", "user"}, {"content", Parts({1, 2})}}}},
               {"max_tokens", 12},
               {"ignore_eos", true}};
  message.update(kOn);
  const Json answered = Post("/v1/messages", message)->json();
  EXPECT_EQ(answered["content"][0]["text"], text) << answered.dump(1);
  same(answered["usage"]);
  message["stream"] = true;
  const auto events = Post("/v1/messages", message)->chunks();
  same(events[events.size() - 2]["usage"]);
}

TEST_F(ApiPassagesTest, AStarReadsThem) {
  Start({.defaults = {.prefill_choices = {"", "star:block=64,anchor=16", "star:block=quarter"}}});
  const auto ask = [&](const char* prefill) {
    Json fields = kOn;
    fields["prefill"] = prefill;
    return Post("/v1/chat/completions", Chat({1, 2}, fields));
  };
  const Json star = ask("star:block=64,anchor=16")->json();
  EXPECT_EQ(star["usage"]["passages"]["exact"], false) << star.dump(1);
  EXPECT_GT(star["choices"][0]["kv"]["context_tokens"], 128);
  EXPECT_NE(star["choices"][0]["token_ids"], ask("")->json()["choices"][0]["token_ids"]);
  EXPECT_THAT(MessageOf(*ask("star:block=quarter"), 400),
              HasSubstr("in another way in each prompt"));
}

TEST_F(ApiPassagesTest, Refusals) {
  Start({.defaults = {.kv_choices = {"dense", "sinks:4+60"}}});
  const auto refused = [&](const Json& fields, bool streams = false) {
    Json all = kOn;
    all.update(fields);
    all["stream"] = streams;
    return MessageOf(*Post("/v1/chat/completions", Chat({1, 2}, all)), 400);
  };
  for (const bool streams : {false, true}) {
    EXPECT_THAT(refused({{"kv", "sinks:4+60"}}, streams), HasSubstr("which forgets tokens"));
    EXPECT_THAT(refused({{"n", 2}}, streams), HasSubstr("\"n\" above 1"));
  }
  Json long_chat = Chat({1, 2}, kOn);
  long_chat["messages"][0]["content"][0]["text"] = std::string(5000, 'a');
  EXPECT_THAT(MessageOf(*Post("/v1/chat/completions", long_chat), 400), HasSubstr("the context"));
  Json fields = kOn;
  fields["kv"] = "sinks:4+60";
  const Json plan = Post("/v1/plan", Chat({1, 2}, fields))->json();
  EXPECT_THAT(plan["plans"][0]["refused"].get<std::string>(), HasSubstr("which forgets tokens"));
}

// A plan has the cached tokens that the answer then has, and a choice by time goes by it.
TEST_F(ApiPassagesTest, APlanCountsWhatIsCached) {
  Start({.defaults = {.kv_choices = {"dense", "sinks:4+60"}}});
  const auto plan_of = [&](const std::vector<int>& passages, const Json& fields) {
    const auto reply = Post("/v1/plan", Chat(passages, fields));
    EXPECT_EQ(reply->status(), 200) << reply->body();
    return reply->json()["plans"];
  };
  for (const std::vector<int>& order : {std::vector{1, 2, 3}, {3, 1, 2}, {2, 4, 1}, {1}}) {
    const Json plans = plan_of(order, kOn);
    const Json reading = plan_of(order, Json::object())[0];
    const Json answer = Post("/v1/chat/completions", Chat(order, kOn))->json();
    EXPECT_EQ(plans[0]["cached_tokens"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]);
    EXPECT_EQ(plans[0]["kv_bytes"], reading["kv_bytes"]);
    EXPECT_GT(plans[0]["first_token_s"], 0);
    EXPECT_TRUE(order.size() == 1 || plans[1].contains("refused")) << "sinks join no passages";
  }
  Json fields = kOn;
  fields["first_token_within_s"] = 1000;
  const Json answer = Post("/v1/chat/completions", Chat({2, 3, 1}, fields))->json();
  EXPECT_EQ(answer["usage"]["plan"]["kv"], "dense") << answer.dump(1);
  EXPECT_GT(answer["usage"]["plan"]["cached_tokens"], 0);
  EXPECT_EQ(answer["usage"]["passages"]["exact"], false);
}

TEST_F(ApiPassagesTest, TheirTimeIsLimited) {
  Json fields = kOn;
  fields.update({{"timeout_ms", 1}, {"max_tokens", 500}});
  const Json reply = Post("/v1/chat/completions", Chat({1, 2}, fields))->json();
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "timeout") << reply.dump(1);
}

TEST_F(ApiPassagesTest, AClientThatLeavesEndsThem) {
  Start();
  for (const bool streams : {false, true}) {
    Json fields = kOn;
    fields.update({{"max_tokens", 100'000}, {"stream", streams}});
    const auto reply = Ask("POST", "/v1/chat/completions", Chat({1, 2}, fields).dump());
    if (streams) reply->WaitForSomething();
    reply->GoAway();
    // The only place for a request is free again.
    EXPECT_EQ(Post("/v1/chat/completions", Chat({1, 2}, kOn))->status(), 200);
  }
}

}  // namespace
}  // namespace godwit::server::api_passages_test
