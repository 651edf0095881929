#include "sampling/penalties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "base/error.h"
#include "sampling/test_support.h"

namespace godwit::penalties_test {
namespace {

using ::testing::ElementsAre;

std::vector<float> Apply(const SamplerOptions& options, std::vector<float> logits,
                         const std::vector<int32_t>& history) {
  Penalties penalties(options, static_cast<int32_t>(logits.size()));
  std::vector<float> first = logits;
  penalties.Apply(first, history);
  penalties.Apply(logits, history);
  EXPECT_EQ(first, logits) << "a call left traces";
  return logits;
}

TEST(Penalties, DefaultsChangeNothing) {
  const std::vector<float> logits = {1, -2, 0, -INFINITY};
  EXPECT_EQ(Apply({}, logits, {0, 1, 2, 3, 3}), logits);
}

TEST(Penalties, RepeatDividesPositiveAndMultipliesNegativeOncePerToken) {
  SamplerOptions options;
  options.repeat_penalty = 2;
  EXPECT_THAT(Apply(options, {4, -4, 0, 4, -INFINITY}, {0, 0, 0, 1, 2, 4}),
              ElementsAre(2, -8, 0, 4, -INFINITY));
}

TEST(Penalties, WindowIsTheEndOfTheHistory) {
  SamplerOptions options;
  options.repeat_penalty = 2;
  options.repeat_last_n = 2;
  EXPECT_THAT(Apply(options, {4, 4, 4}, {0, 1, 2}), ElementsAre(4, 2, 2));
  options.repeat_last_n = 0;
  EXPECT_THAT(Apply(options, {4, 4, 4}, {0, 1, 2}), ElementsAre(4, 4, 4));
  options.repeat_last_n = -1;
  EXPECT_THAT(Apply(options, {4, 4, 4}, {0, 1, 2}), ElementsAre(2, 2, 2));
  EXPECT_THAT(Apply(options, {4, 4, 4}, {}), ElementsAre(4, 4, 4));
}

TEST(Penalties, PresenceOnceFrequencyPerOccurrence) {
  SamplerOptions options;
  options.presence_penalty = 1;
  options.frequency_penalty = 0.5f;
  EXPECT_THAT(Apply(options, {0, 0, 0}, {0, 0, 0, 1}), ElementsAre(-2.5f, -1.5f, 0));
}

TEST(Penalties, BiasComesFirst) {
  SamplerOptions options;
  options.repeat_penalty = 2;
  options.logit_bias = {{0, 6.0f}, {2, -INFINITY}};
  EXPECT_THAT(Apply(options, {-2, 0, 5}, {0}), ElementsAre(2, 0, -INFINITY));
}

TEST(Penalties, AgreeWithTheDefinition) {
  SamplerOptions options;
  options.repeat_penalty = 1.3f;
  options.presence_penalty = 0.2f;
  options.frequency_penalty = 0.1f;
  options.repeat_last_n = 100;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> logits = RandomLogits(50, seed);
    std::vector<int32_t> history;
    for (int i = 0; i < 150; ++i) {
      history.push_back(static_cast<int32_t>(50 * Uniform(seed, 2, i, 0)));
    }
    std::map<int32_t, int> counts;
    for (size_t i = 50; i < 150; ++i) ++counts[history[i]];
    std::vector<float> expected = logits;
    for (const auto& [token, count] : counts) {
      float& logit = expected[token];
      logit = logit > 0 ? logit / 1.3f : logit * 1.3f;
      logit -= 0.2f + 0.1f * static_cast<float>(count);
    }
    EXPECT_EQ(Apply(options, logits, history), expected);
  }
}

TEST(Penalties, RefusesUnknownTokensAndOverflow) {
  SamplerOptions options;
  options.repeat_penalty = 1.1f;
  EXPECT_THROW(Apply(options, {1, 2}, {0, 2}), Error);
  EXPECT_THROW(Apply(options, {1, 2}, {-1}), Error);
  options.logit_bias = {{0, 3e38f}};
  EXPECT_THROW(Apply(options, {3e38f, 2}, {}), Error);
}

}  // namespace
}  // namespace godwit::penalties_test
