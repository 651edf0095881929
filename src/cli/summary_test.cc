#include "cli/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sampling/options.h"

namespace godwit::cli::summary_test {
namespace {

GenerateResult Example() {
  GenerateResult result;
  result.tokens = {1, 2, 3};
  result.prompt_tokens = 100;
  result.cached_tokens = 60;
  result.read_tokens = 40;
  result.kv = {.policy = "dense", .seen = 102, .kept = 102, .bytes = 2048};
  result.prompt_ms = 400;
  result.predicted_ms = 100;
  return result;
}

TEST(Summary, RatesLeaveOutWhatCostNothing) {
  const GenerateResult result = Example();
  EXPECT_DOUBLE_EQ(PromptRate(result), 100);
  EXPECT_DOUBLE_EQ(PredictedRate(result), 20);
  EXPECT_EQ(PromptRate({}), 0);
  EXPECT_EQ(PredictedRate({}), 0);
}

TEST(Summary, IsReadable) {
  EXPECT_EQ(Summarize(Example()),
            "prompt  100 tokens, 60 of them cached, 0.40 s (100 tokens/s)\n"
            "output  3 tokens, 0.10 s (20.0 tokens/s)\n"
            "kv      dense: 102 of 102 tokens kept, 2.0 KiB\n");
}

TEST(Summary, SaysWhatLoadingTookTimeFor) {
  const LoadTimes times{.total_ms = 1320, .weights_ms = 800, .tokenizer_ms = 410};
  EXPECT_EQ(DescribeLoad(times), "1.32 s: weights 0.80 s, tokenizer 0.41 s, other 0.11 s");
  EXPECT_DOUBLE_EQ(LoadJson(times)["other_ms"].get<double>(), 110);
}

TEST(Summary, ACancelledPromptIsMeasuredByWhatWasRead) {
  GenerateResult result = Example();
  result.tokens.clear();
  result.read_tokens = 10;
  result.finish_reason = FinishReason::kCancelled;
  EXPECT_DOUBLE_EQ(PromptRate(result), 25);
  EXPECT_THAT(Summarize(result), testing::StartsWith("prompt  100 tokens, 60 of them cached, 10 of "
                                                     "them read, 0.40 s (25.0 tokens/s)\n"));
  result.read_tokens = 0;
  EXPECT_EQ(PromptRate(result), 0);
}

TEST(Summary, SaysWhatWasDroppedAndWhere) {
  EXPECT_EQ(DescribeDropped({.policy = "dense", .seen = 5, .kept = 5}), "");
  EXPECT_EQ(
      DescribeDropped({.policy = "sinks:4+60", .seen = 228, .kept = 64, .dropped = {{4, 168}}}),
      "dropped 164 tokens after the first 4");
  GenerateResult result = Example();
  result.kv = {.policy = "sinks:4+60", .seen = 65, .kept = 64, .dropped = {{4, 5}}, .bytes = 0};
  EXPECT_THAT(Summarize(result), testing::EndsWith("; dropped 1 token after the first 4\n"));
}

TEST(Summary, ReportsAcceptedDrafts) {
  EXPECT_EQ(DescribeDrafts({}), "no draft tokens were needed");
  EXPECT_EQ(DescribeDrafts({.steps = 4,
                            .draft_tokens = 9,
                            .accepted = 2,
                            .sources = {{"ngram", 0, 0}, {"recycled", 2, 0}}}),
            "1.50 tokens a step; 2 accepted of 9 draft tokens: 2 of recycled");
  EXPECT_EQ(DescribeDrafts({.steps = 100, .sources = {{"ngram", 0, 1}, {"heads", 0, 64}}}),
            "1.00 tokens a step; 0 accepted of 0 draft tokens: none would have saved time; paused "
            "because it took more time than it saved: ngram in 1 step, heads in 64 steps");
  EXPECT_EQ(DescribeDrafts({.steps = 4,
                            .draft_tokens = 2,
                            .accepted = 2,
                            .steps_short_of_memory = 2,
                            .sources = {{"ngram", 2, 0}}}),
            "1.50 tokens a step; 2 accepted of 2 draft tokens: 2 of ngram; 2 steps had no memory "
            "for draft tokens");
}

TEST(SamplerSummaryTest, NamesTheStepsInTheirOrderAndWhatIsTheModels) {
  EffectiveSampler sampler;
  EXPECT_EQ(DescribeSampler(sampler), "top-k 40, top-p 0.95, min-p 0.05, temperature 0.8");
  sampler.options.repeat_penalty = 1.1f;
  sampler.options.top_p = 0.9f;
  sampler.options.min_p = 0;
  sampler.from_model = {"repeat_penalty", "top_p"};
  EXPECT_EQ(DescribeSampler(sampler),
            "repeat penalty 1.1 (the model's), top-k 40, top-p 0.9 (the model's), temperature 0.8");
  sampler.options.steps = ParseSteps("temperature;top_p");
  EXPECT_EQ(DescribeSampler(sampler), "temperature 0.8, top-p 0.9 (the model's)");
  sampler.options.steps = {};
  EXPECT_EQ(DescribeSampler(sampler), "the model's own probabilities");
}

TEST(SamplerSummaryTest, GreedyHasPenaltiesAlone) {
  EffectiveSampler sampler;
  sampler.options.temperature = 0;
  EXPECT_EQ(DescribeSampler(sampler), "greedy");
  sampler.options.presence_penalty = 0.5f;
  sampler.from_model = {"temperature"};
  EXPECT_EQ(DescribeSampler(sampler), "presence penalty 0.5, greedy (the model's)");
}

TEST(SamplerSummaryTest, JsonHasEveryOptionAsItWasTyped) {
  EffectiveSampler sampler;
  sampler.from_model = {"top_p", "temperature"};
  EXPECT_EQ(SamplerJson(sampler).dump(),
            R"({"samplers":["penalties","top_k","top_p","min_p","eta","temperature"],)"
            R"("repeat_last_n":64,"repeat_penalty":1,"presence_penalty":0,"frequency_penalty":0,)"
            R"("top_k":40,"top_p":0.95,"min_p":0.05,"eta":0,"temperature":0.8,)"
            R"("from_model":["temperature","top_p"]})");
}

}  // namespace
}  // namespace godwit::cli::summary_test
