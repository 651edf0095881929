#include "sampling/top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sampling/test_support.h"

namespace godwit::top_k_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int32_t> KeptBy(int top_k, const std::vector<float>& logits) {
  Candidates candidates;
  candidates.reserve(TopKCapacity(top_k, logits.size()));
  const Candidate* storage = candidates.data();
  TopK(logits, top_k, candidates);
  EXPECT_EQ(candidates.data(), storage) << "reallocated";
  return Tokens(candidates);
}

TEST(TopK, LikeliestFirstAndLowestIdsOfEquals) {
  EXPECT_THAT(KeptBy(3, {1, 5, 3, 5, 3, 3}), ElementsAre(1, 3, 2));
  EXPECT_THAT(KeptBy(1, {2, 2, 2, 2}), ElementsAre(0));
  EXPECT_THAT(KeptBy(2, {2, 2, 2, 2, 2, 2, 2}), ElementsAre(0, 1));
}

TEST(TopK, OffAndLargeKeepEverythingInOrderOfIds) {
  EXPECT_THAT(KeptBy(0, {1, 5, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(KeptBy(3, {1, 5, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(KeptBy(2147483647, {1, 5, 3}), ElementsAre(0, 1, 2));
}

TEST(TopK, MinusInfinityIsNeverACandidate) {
  EXPECT_THAT(KeptBy(3, {-INFINITY, 1, -INFINITY, 0, -INFINITY}), ElementsAre(1, 3));
  EXPECT_THAT(KeptBy(0, {-INFINITY, 1}), ElementsAre(1));
  EXPECT_THAT(KeptBy(2, {-INFINITY, -INFINITY, -INFINITY}), IsEmpty());
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
        EXPECT_EQ(KeptBy(k, logits), expected) << "k " << k << " of " << vocab;
      }
    }
  }
}

}  // namespace
}  // namespace godwit::top_k_test
