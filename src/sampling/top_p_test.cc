#include "sampling/top_p.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sampling/test_support.h"

namespace godwit::top_p_test {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> KeptBy(float top_p, Candidates candidates) {
  KeepTopP(candidates, top_p);
  EXPECT_NEAR(Mass(candidates), 1, 1e-12);
  return Tokens(candidates);
}

TEST(TopP, TheFewestTokensThatReachP) {
  const Candidates candidates = FromProbabilities({0.1, 0.4, 0.2, 0.3});
  EXPECT_THAT(KeptBy(0.35f, candidates), ElementsAre(1));
  EXPECT_THAT(KeptBy(0.45f, candidates), ElementsAre(1, 3));
  EXPECT_THAT(KeptBy(0.75f, candidates), ElementsAre(1, 3, 2));
  EXPECT_THAT(KeptBy(0.95f, candidates), ElementsAre(1, 3, 2, 0));
}

TEST(TopP, ZeroKeepsTheLikeliestAndOneChangesNothing) {
  const Candidates candidates = FromProbabilities({0.1, 0.4, 0.4, 0.1});
  EXPECT_THAT(KeptBy(0, candidates), ElementsAre(1));
  EXPECT_THAT(KeptBy(1, candidates), ElementsAre(0, 1, 2, 3));
}

TEST(TopP, AgreesWithTheDefinition) {
  for (const size_t vocab : {size_t{1}, size_t{3}, size_t{100}, size_t{4000}}) {
    for (const double spread : {0.0, 0.1, 1.0, 5.0}) {
      for (const float top_p : {0.001f, 0.1f, 0.5f, 0.9f, 0.95f, 0.999f, 0.999999f}) {
        Candidates sorted = MakeCandidates(RandomLogits(vocab, vocab + 1, spread));
        const std::vector<int32_t> kept = KeptBy(top_p, sorted);
        std::sort(sorted.begin(), sorted.end(), Likelier);
        double mass = 0;
        size_t count = 0;
        while (mass < top_p && count < vocab) mass += sorted[count++].probability;
        sorted.resize(count);
        EXPECT_EQ(kept, Tokens(sorted)) << vocab << " tokens, spread " << spread << ", p " << top_p;
      }
    }
  }
}

}  // namespace
}  // namespace godwit::top_p_test
