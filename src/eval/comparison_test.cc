#include "eval/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/test_support.h"
#include "engine/engine_impl.h"
#include "tests/fake_model.h"
#include "tests/session_of.h"

namespace godwit::eval::comparison_test {
namespace {

using testing::ElementsAre;

constexpr int32_t kVocab = 11;

// A model that predicts the last token plus `step`: its logit is 0, all others are `other_logits`.
std::unique_ptr<const Engine::Impl> EngineThatAdds(int32_t step, float other_logits,
                                                   int64_t max_context = 1000) {
  auto model = std::make_unique<FakeModel>(
      kVocab, [step](int32_t token, int64_t) { return (token + step) % kVocab; });
  model->other_logits = other_logits;
  return std::make_unique<const Engine::Impl>(std::move(model),
                                              FakeModel::Spec(kVocab, max_context), nullptr,
                                              SpecialTokens{}, LoadOptions{.threads = 1});
}

class ComparisonTest : public testing::Test {
 protected:
  ModelComparison Measure(const Engine::Impl& reference, const Engine::Impl& other,
                          const std::vector<std::vector<int32_t>>& texts, WindowOptions windows,
                          const std::vector<int32_t>& frame = {}) {
    Session first = SessionOf(reference);
    Session second = SessionOf(other);
    tokens_.clear();
    progress_.clear();
    return Compare(first, second, ScoringPlan(texts, frame, windows),
                   {.on_token = [&](const ComparedToken& token) { tokens_.push_back(token); },
                    .on_progress =
                        [&](int64_t done, int64_t total) {
                          progress_.push_back(done);
                          total_ = total;
                        }});
  }

  std::vector<ComparedToken> tokens_;
  std::vector<int64_t> progress_;
  int64_t total_ = 0;
};

TEST_F(ComparisonTest, AModelIsTheSameAsItself) {
  const auto engine = EngineThatAdds(1, -5);
  const auto result = Measure(*engine, *engine, {{1, 2, 3, 9, 10}}, {.size = 3});
  EXPECT_EQ(result.tokens, 3);
  EXPECT_EQ(result.kl, 0);
  EXPECT_EQ(result.top1, 1);
  EXPECT_EQ(result.nll, result.reference_nll);
  EXPECT_EQ(result.change(), 0);
  EXPECT_EQ(result.worst.reference.position, 1);  // the first of equals
}

// Two distributions that differ in one token, computed by hand.
TEST_F(ComparisonTest, SharperLogitsMoveProbability) {
  const auto reference = EngineThatAdds(1, -2);
  const auto other = EngineThatAdds(1, -4);
  const auto result = Measure(*reference, *other, {{3, 4, 5}}, {.size = 10});
  const double p = 1 / (1 + 10 * std::exp(-2.0)), q = 1 / (1 + 10 * std::exp(-4.0));
  const double kl = p * std::log(p / q) + (1 - p) * std::log((1 - p) / (1 - q));
  EXPECT_NEAR(result.kl, kl, 1e-12);
  EXPECT_NEAR(result.worst.kl, kl, 1e-12);
  EXPECT_EQ(result.top1, 1);
  EXPECT_NEAR(result.reference_nll, -std::log(p), 1e-12);
  EXPECT_NEAR(result.nll, -std::log(q), 1e-12);
  EXPECT_NEAR(result.perplexity(), 1 / q, 1e-12);
  EXPECT_NEAR(result.change(), p / q - 1, 1e-12);
}

TEST_F(ComparisonTest, CountsAndFindsTheWorst) {
  // The other model is wrong only after token 7.
  auto model = std::make_unique<FakeModel>(
      kVocab, [](int32_t token, int64_t) { return token == 7 ? 0 : (token + 1) % kVocab; });
  const Engine::Impl other(std::move(model), FakeModel::Spec(kVocab, 1000), nullptr,
                           SpecialTokens{}, LoadOptions{.threads = 1});
  const auto reference = EngineThatAdds(1, -20);
  const auto result = Measure(*reference, other, {{1, 2, 3, 4}, {5, 6, 7, 8}}, {.size = 4}, {0});
  EXPECT_EQ(result.tokens, 8);
  EXPECT_DOUBLE_EQ(result.top1, 7.0 / 8);
  EXPECT_EQ(result.worst.reference.text, 1u);
  EXPECT_EQ(result.worst.reference.position, 3);
  EXPECT_EQ(result.worst.reference.token, 8);
  EXPECT_FALSE(result.worst.agrees);
  EXPECT_NEAR(result.worst.kl, 20, 1e-6);
  EXPECT_NEAR(result.kl, 20.0 / 8, 1e-6);

  std::vector<int64_t> positions;
  for (const ComparedToken& token : tokens_) positions.push_back(token.reference.position);
  EXPECT_THAT(positions, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  ASSERT_EQ(progress_.size(), 16u);
  EXPECT_EQ(progress_.back(), total_);
}

// Windows that do not fit are refused before any reading: the model may be the last of many.
TEST_F(ComparisonTest, RefusesWindowsThatDoNotFitEither) {
  const auto reference = EngineThatAdds(1, -20);
  const auto other = EngineThatAdds(1, -20, /*max_context=*/2);
  const Error error = ErrorOf([&] { Measure(*reference, *other, {{1, 2, 3, 4}}, {.size = 4}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), testing::HasSubstr("windows of 4 tokens do not fit"));
  EXPECT_TRUE(static_cast<const FakeModel&>(*reference->model).reads().empty());
}

}  // namespace
}  // namespace godwit::eval::comparison_test
