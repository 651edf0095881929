#include "sampling/eta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sampling/test_support.h"

namespace godwit::eta_test {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<int32_t> KeptBy(float epsilon, Candidates candidates) {
  KeepEta(candidates, epsilon);
  EXPECT_NEAR(Mass(candidates), 1, 1e-12);
  return Tokens(candidates);
}

TEST(Eta, PeakedDistributionHasTheAbsoluteFloor) {
  // Entropy 0.58 nats, so sqrt(0.01) exp(-0.58) = 0.056 and epsilon is the smaller.
  const Candidates candidates = FromProbabilities({0.009, 0.8, 0.011, 0.18});
  EXPECT_THAT(KeptBy(0.01f, candidates), ElementsAre(1, 2, 3));
}

TEST(Eta, FlatDistributionKeepsItsMany) {
  // 1000 equals have entropy log(1000): the cutoff is sqrt(0.01) / 1000, not 0.01.
  const Candidates candidates = FromProbabilities(std::vector<double>(1000, 1));
  EXPECT_THAT(KeptBy(0.01f, candidates), SizeIs(1000));
}

TEST(Eta, ZeroIsOffAndTheLikeliestAlwaysStays) {
  const Candidates candidates = FromProbabilities({0.3, 0.4, 0.3});
  EXPECT_THAT(KeptBy(0, candidates), ElementsAre(0, 1, 2));
  EXPECT_THAT(KeptBy(1, FromProbabilities({0.01, 0.98, 0.01})), ElementsAre(1));
}

TEST(Eta, AgreesWithTheDefinition) {
  for (const double spread : {0.1, 1.0, 3.0, 6.0}) {
    for (const float epsilon : {0.0003f, 0.002f, 0.05f}) {
      const Candidates all = MakeCandidates(RandomLogits(1000, 5, spread));
      double entropy = 0;
      for (const Candidate& c : all) entropy -= c.probability * std::log(c.probability);
      const double eta = std::min<double>(epsilon, std::sqrt(double{epsilon}) * std::exp(-entropy));
      std::vector<int32_t> expected;
      for (const Candidate& c : all) {
        if (c.probability >= eta) expected.push_back(c.token);
      }
      EXPECT_EQ(KeptBy(epsilon, all), expected) << "spread " << spread << " epsilon " << epsilon;
    }
  }
}

}  // namespace
}  // namespace godwit::eta_test
