#include "chat/plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "engine/engine_test_support.h"

namespace godwit::chat::plans_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

const CompletionDefaults kDefaults{.kv_choices = {"dense", "sinks:4+60"},
                                   .prefill_choices = {"", "window:16"}};

std::string Words(const Error& error) { return error.what(); }

TEST(PlansTest, OpenWaysAreThoseThatTheRequestLeaves) {
  CompletionRequest request;
  request.generate.draft = "ngram";
  const SessionOptions options{.kv = "dense"};
  EXPECT_THAT(OpenWays(request, options, kDefaults),
              ElementsAre(Way{"dense", "", "ngram"}, Way{"dense", "window:16", "ngram"},
                          Way{"sinks:4+60", "", "ngram"}, Way{"sinks:4+60", "window:16", "ngram"}));
  request.prefill = "window:16";
  EXPECT_THAT(
      OpenWays(request, options, kDefaults),
      ElementsAre(Way{"dense", "window:16", "ngram"}, Way{"sinks:4+60", "window:16", "ngram"}));
  request.kv = "sinks:4+60";
  EXPECT_THAT(OpenWays(request, options, kDefaults),
              ElementsAre(Way{"sinks:4+60", "window:16", "ngram"}));
  EXPECT_THAT(OpenWays({}, options, {}), ElementsAre(Way{"dense", "", ""}));
}

class EnginePlansTest : public testing::Test {
 protected:
  CompletionRequest RequestOf(int64_t tokens) const {
    CompletionRequest request;
    request.generate = Greedy(4, /*query_tokens=*/0);
    request.prompt = godwit::Prompt(1, tokens);
    return request;
  }
  void Prepare(CompletionRequest& request) const {
    PrepareRequest(engine_, session_, {}, kDefaults, Words, request);
  }

  Engine engine_{kTiny, {.threads = 1}};
  Session session_ = engine_.NewSession({});
};

TEST_F(EnginePlansTest, APlanHasEachWay) {
  const std::vector<Way> ways{{"dense", "", ""}, {"sinks:4+60", "", ""}, {"nonsense", "", ""}};
  const auto plans = PlansOf(engine_, session_, {}, RequestOf(900), ways, Words);
  ASSERT_EQ(plans.size(), 3u);
  const Json json = PlansJson(plans);
  EXPECT_EQ(json["prompt_tokens"], 900);
  EXPECT_EQ(json["other_requests"], 0);
  EXPECT_FALSE(json.contains("chosen"));
  const Json &dense = json["plans"][0], &sinks = json["plans"][1];
  EXPECT_EQ(dense["kv"], "dense");
  EXPECT_EQ(dense["cached_tokens"], 0);
  EXPECT_GE(dense["first_token_s"], 0);
  EXPECT_LT(sinks["kv_bytes"], dense["kv_bytes"]);
  EXPECT_THAT(json["plans"][2]["refused"].get<std::string>(), HasSubstr("nonsense"));
  EXPECT_FALSE(json["plans"][2].contains("first_token_s"));
  EXPECT_EQ(PlansJson(plans, 1000)["chosen"], 0);
  EXPECT_TRUE(PlansJson(plans, 1e-9)["chosen"].is_null());
}

TEST_F(EnginePlansTest, ARequestIsAnsweredAsItStandsIfThatIsInTime) {
  CompletionRequest request = RequestOf(200);
  request.first_token_within_s = 1000;
  Prepare(request);
  EXPECT_EQ(request.kv, "dense");
  EXPECT_EQ(request.prefill, "");
  EXPECT_EQ(request.more_usage["plan"]["kv"], "dense");
  EXPECT_FALSE(request.include_usage);
  request = RequestOf(200);
  request.first_token_within_s = 1000;
  request.stream = true;
  Prepare(request);
  EXPECT_TRUE(request.include_usage) << "a stream tells it at its end";
}

TEST_F(EnginePlansTest, ARequestThatCannotBeInTimeIsRefusedWithItsPlan) {
  CompletionRequest request = RequestOf(200);
  request.first_token_within_s = 1e-9;
  try {
    Prepare(request);
    FAIL();
  } catch (const LateFirstToken& late) {
    EXPECT_THAT(late.what(), HasSubstr("the first token would come after "));
    EXPECT_THAT(late.what(), HasSubstr("\"first_token_within_s\" is 1e-09"));
    EXPECT_EQ(late.plans()["plans"].size(), 4u);
    EXPECT_TRUE(late.plans()["chosen"].is_null());
  }
}

TEST_F(EnginePlansTest, RequestsOfSeveralPromptsHaveNoPlan) {
  CompletionRequest request = RequestOf(20);
  request.more_prompts.push_back(std::string("x"));
  const Way way{"dense", "", ""};
  EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                      [&] { PlansOf(engine_, session_, {}, request, std::span(&way, 1), Words); }),
              HasSubstr("a plan is made for one prompt, and \"prompt\" has 2"));
}

TEST(PlanRequestTest, EveryApiHasPlans) {
  const auto parsed = [](std::string_view body) {
    return ParsePlanRequest(Json::parse(body), CompletionDefaults());
  };
  EXPECT_EQ(std::get<std::string>(parsed(R"({"prompt": "Once"})").prompt), "Once");
  const std::string chat = R"("messages": [{"role": "user", "content": "Hello"}])";
  EXPECT_EQ(std::get<std::vector<Message>>(parsed("{" + chat + "}").prompt).size(), 1u);
  EXPECT_EQ(
      std::get<std::vector<Message>>(parsed("{" + chat + R"(, "system": "Be brief."})").prompt)[0]
          .role,
      "system");
  EXPECT_EQ(std::get<std::vector<Message>>(
                parsed("{" + chat + R"(, "api": "messages", "max_tokens": 5})").prompt)
                .size(),
            1u);
  EXPECT_EQ(std::get<std::vector<Message>>(parsed(R"({"input": "Hello"})").prompt)[0].content,
            "Hello");
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { parsed(R"({"prompt": "x", "api": "infill"})"); }),
              HasSubstr(R"("api": expected "chat/completions")"));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { parsed(R"({"promt": "x"})"); }),
              HasSubstr("did you mean"));
}

}  // namespace
}  // namespace godwit::chat::plans_test
