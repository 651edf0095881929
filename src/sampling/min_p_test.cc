#include "sampling/min_p.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/test_support.h"

namespace godwit::min_p_test {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> KeptBy(float min_p, Candidates candidates) {
  KeepMinP(candidates, min_p);
  EXPECT_NEAR(Mass(candidates), 1, 1e-12);
  return Tokens(candidates);
}

TEST(MinP, CutsBelowAFractionOfTheMaximum) {
  const Candidates candidates = FromProbabilities({0.05, 0.5, 0.15, 0.3});
  EXPECT_THAT(KeptBy(0, candidates), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(KeptBy(0.09f, candidates), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(KeptBy(0.2f, candidates), ElementsAre(1, 2, 3));
  EXPECT_THAT(KeptBy(0.5f, candidates), ElementsAre(1, 3));
  EXPECT_THAT(KeptBy(0.7f, candidates), ElementsAre(1));
}

TEST(MinP, OneKeepsTheMaximumAndItsEquals) {
  EXPECT_THAT(KeptBy(1, FromProbabilities({0.4, 0.2, 0.4})), ElementsAre(0, 2));
}

TEST(MinP, AgreesWithTheDefinition) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> logits = RandomLogits(1000, seed);
    const Candidates all = MakeCandidates(logits);
    double max = 0;
    for (const Candidate& c : all) max = std::max(max, c.probability);
    std::vector<int32_t> expected;
    for (const Candidate& c : all) {
      if (c.probability >= 0.05f * max) expected.push_back(c.token);
    }
    EXPECT_EQ(KeptBy(0.05f, all), expected);
  }
}

}  // namespace
}  // namespace godwit::min_p_test
