#include "cli/sampler_summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sampling/options.h"

namespace godwit::cli {
namespace {

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
  EXPECT_EQ(DescribeSampler(sampler), "the model's probabilities as they are");
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
}  // namespace godwit::cli
