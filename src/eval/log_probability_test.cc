#include "eval/log_probability.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace godwit::eval::log_probability_test {
namespace {

TEST(LogProbability, IsTheLogarithmOfSoftmax) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  EXPECT_NEAR(LogProbability(logits, 0), std::log(1.0 / 8), 1e-7);
  EXPECT_NEAR(LogProbability(logits, 2), std::log(5.0 / 8), 1e-7);
}

// exp of any of these numbers overflows or is 0.
TEST(LogProbability, HoldsFarFromZero) {
  for (const float offset : {30000.0f, -30000.0f}) {
    const std::vector<float> logits = {offset, offset - 1};
    EXPECT_NEAR(LogProbability(logits, 0), -std::log(1 + std::exp(-1.0)), 1e-12);
    EXPECT_NEAR(LogProbability(logits, 1), -1 - std::log(1 + std::exp(-1.0)), 1e-12);
  }
  EXPECT_EQ(LogProbability(std::vector<float>{-30000, 30000}, 0), -60000);
}

TEST(LogProbability, CountsEveryTokenOfALargeVocabulary) {
  const std::vector<float> flat(262144, 12.5f);
  EXPECT_NEAR(LogProbability(flat, 262143), -std::log(262144.0), 1e-12);
}

TEST(LogProbability, SaysWhatIsImpossibleAndWhatIsNoNumber) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(LogProbability(std::vector<float>{-kInf, 0}, 0), -kInf);
  EXPECT_EQ(LogProbability(std::vector<float>{-kInf, 0}, 1), 0);
  for (const auto& logits : {std::vector<float>{NAN, 0}, std::vector<float>{0, NAN}}) {
    EXPECT_TRUE(std::isnan(LogProbability(logits, 0)));
    EXPECT_TRUE(std::isnan(LogProbability(logits, 1)));
  }
}

TEST(MostProbable, IsTheFirstOfTheLargest) {
  EXPECT_EQ(MostProbable(std::vector<float>{-3, 2, 1, 2}), 1);
}

TEST(KlDivergence, IsTheSumByHand) {
  // 1/8, 2/8, 5/8 and 1/2, 1/4, 1/4. A constant added to logits changes nothing.
  const std::vector<float> p = {10, 10 + std::log(2.0f), 10 + std::log(5.0f)};
  const std::vector<float> q = {std::log(2.0f), 0, 0};
  EXPECT_NEAR(KlDivergence(p, q), std::log(0.25) / 8 + 5 * std::log(2.5) / 8, 1e-6);
  EXPECT_NEAR(KlDivergence(q, p), std::log(4.0) / 2 + std::log(0.4) / 4, 1e-6);
  EXPECT_EQ(KlDivergence(p, p), 0);
}

TEST(KlDivergence, ZeroProbabilitiesGiveInfinityOrNothing) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> p = {-kInf, 0, 0}, q = {0, 0, 0}, r = {-kInf, -kInf, 0};
  EXPECT_NEAR(KlDivergence(p, q), std::log(1.5), 1e-12);  // 0 log 0 = 0
  EXPECT_EQ(KlDivergence(p, p), 0);
  EXPECT_EQ(KlDivergence(p, r), kInf);
  EXPECT_TRUE(std::isnan(KlDivergence(std::vector<float>{NAN, 0, 0}, q)));
  EXPECT_TRUE(std::isnan(KlDivergence(q, std::vector<float>{0, NAN, 0})));
}

}  // namespace
}  // namespace godwit::eval::log_probability_test
