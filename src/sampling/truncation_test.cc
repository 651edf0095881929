#include "sampling/truncation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sampling/test_support.h"

namespace godwit::truncation_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<int32_t> LikeliestOf(int top_k, const std::vector<float>& logits) {
  Candidates candidates;
  candidates.reserve(TopKCapacity(top_k, logits.size()));
  const Candidate* storage = candidates.data();
  TopK(logits, top_k, candidates);
  EXPECT_EQ(candidates.data(), storage) << "reallocated";
  return Tokens(candidates);
}

TEST(TopK, LikeliestFirstAndLowestIdsOfEquals) {
  EXPECT_THAT(LikeliestOf(3, {1, 5, 3, 5, 3, 3}), ElementsAre(1, 3, 2));
  EXPECT_THAT(LikeliestOf(1, {2, 2, 2, 2}), ElementsAre(0));
  EXPECT_THAT(LikeliestOf(2, {2, 2, 2, 2, 2, 2, 2}), ElementsAre(0, 1));
}

TEST(TopK, OffAndLargeKeepEverythingInOrderOfIds) {
  EXPECT_THAT(LikeliestOf(0, {1, 5, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(LikeliestOf(3, {1, 5, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(LikeliestOf(2147483647, {1, 5, 3}), ElementsAre(0, 1, 2));
}

TEST(TopK, MinusInfinityIsNeverACandidate) {
  EXPECT_THAT(LikeliestOf(3, {-INFINITY, 1, -INFINITY, 0, -INFINITY}), ElementsAre(1, 3));
  EXPECT_THAT(LikeliestOf(0, {-INFINITY, 1}), ElementsAre(1));
  EXPECT_THAT(LikeliestOf(2, {-INFINITY, -INFINITY, -INFINITY}), IsEmpty());
}

TEST(TopK, AgreesWithAFullSort) {
  for (const size_t vocab : {size_t{1}, size_t{2}, size_t{50}, size_t{5000}}) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      std::vector<float> logits = RandomLogits(vocab, seed, /*spread=*/0.5);
      if (seed == 1) std::sort(logits.begin(), logits.end());  // the worst case for the bar
      if (seed == 2) std::sort(logits.rbegin(), logits.rend());
      Candidates sorted = MakeCandidates(logits);
      std::sort(sorted.begin(), sorted.end(), Likelier);
      const std::vector<int32_t> all = Tokens(sorted);
      for (const int k : {1, 2, 3, 40, 49, 1000, 4999}) {
        if (static_cast<size_t>(k) >= vocab) continue;
        const std::vector<int32_t> expected(all.begin(), all.begin() + k);
        EXPECT_EQ(LikeliestOf(k, logits), expected) << "k " << k << " of " << vocab;
      }
    }
  }
}

std::vector<int32_t> KeptBy(void (*keep)(Candidates&, float), float limit, Candidates candidates) {
  keep(candidates, limit);
  EXPECT_NEAR(Mass(candidates), 1, 1e-12);
  return Tokens(candidates);
}

TEST(TopP, TheFewestTokensThatReachP) {
  const Candidates candidates = FromProbabilities({0.1, 0.4, 0.2, 0.3});
  EXPECT_THAT(KeptBy(KeepTopP, 0.35f, candidates), ElementsAre(1));
  EXPECT_THAT(KeptBy(KeepTopP, 0.45f, candidates), ElementsAre(1, 3));
  EXPECT_THAT(KeptBy(KeepTopP, 0.75f, candidates), ElementsAre(1, 3, 2));
  EXPECT_THAT(KeptBy(KeepTopP, 0.95f, candidates), ElementsAre(1, 3, 2, 0));
}

TEST(TopP, ZeroKeepsTheLikeliestAndOneChangesNothing) {
  const Candidates candidates = FromProbabilities({0.1, 0.4, 0.4, 0.1});
  EXPECT_THAT(KeptBy(KeepTopP, 0, candidates), ElementsAre(1));
  EXPECT_THAT(KeptBy(KeepTopP, 1, candidates), ElementsAre(0, 1, 2, 3));
}

TEST(TopP, AgreesWithTheDefinition) {
  for (const size_t vocab : {size_t{1}, size_t{3}, size_t{100}, size_t{4000}}) {
    for (const double spread : {0.0, 0.1, 1.0, 5.0}) {
      for (const float top_p : {0.001f, 0.1f, 0.5f, 0.9f, 0.95f, 0.999f, 0.999999f}) {
        Candidates sorted = MakeCandidates(RandomLogits(vocab, vocab + 1, spread));
        const std::vector<int32_t> kept = KeptBy(KeepTopP, top_p, sorted);
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

TEST(MinP, CutsBelowAFractionOfTheMaximum) {
  const Candidates candidates = FromProbabilities({0.05, 0.5, 0.15, 0.3});
  EXPECT_THAT(KeptBy(KeepMinP, 0, candidates), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(KeptBy(KeepMinP, 0.09f, candidates), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(KeptBy(KeepMinP, 0.2f, candidates), ElementsAre(1, 2, 3));
  EXPECT_THAT(KeptBy(KeepMinP, 0.5f, candidates), ElementsAre(1, 3));
  EXPECT_THAT(KeptBy(KeepMinP, 0.7f, candidates), ElementsAre(1));
}

TEST(MinP, OneKeepsTheMaximumAndItsEquals) {
  EXPECT_THAT(KeptBy(KeepMinP, 1, FromProbabilities({0.4, 0.2, 0.4})), ElementsAre(0, 2));
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
    EXPECT_EQ(KeptBy(KeepMinP, 0.05f, all), expected);
  }
}

TEST(Eta, PeakedDistributionHasTheAbsoluteFloor) {
  // The entropy is 0.58 nats, so sqrt(0.01) exp(-0.58) = 0.056 and epsilon is the smaller.
  const Candidates candidates = FromProbabilities({0.009, 0.8, 0.011, 0.18});
  EXPECT_THAT(KeptBy(KeepEta, 0.01f, candidates), ElementsAre(1, 2, 3));
}

TEST(Eta, FlatDistributionKeepsItsMany) {
  // 1000 equals have entropy log(1000): the cutoff is sqrt(0.01) / 1000, not 0.01.
  const Candidates candidates = FromProbabilities(std::vector<double>(1000, 1));
  EXPECT_THAT(KeptBy(KeepEta, 0.01f, candidates), SizeIs(1000));
}

TEST(Eta, ZeroIsOffAndTheLikeliestAlwaysStays) {
  const Candidates candidates = FromProbabilities({0.3, 0.4, 0.3});
  EXPECT_THAT(KeptBy(KeepEta, 0, candidates), ElementsAre(0, 1, 2));
  EXPECT_THAT(KeptBy(KeepEta, 1, FromProbabilities({0.01, 0.98, 0.01})), ElementsAre(1));
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
      EXPECT_EQ(KeptBy(KeepEta, epsilon, all), expected)
          << "spread " << spread << " epsilon " << epsilon;
    }
  }
}

}  // namespace
}  // namespace godwit::truncation_test
