#include "train/head_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "train/train_test_support.h"

namespace godwit::train::head_gradient_test {
namespace {

HeadParameters Random(int64_t heads, const Decoder& decoder, float size, bool independent = false) {
  HeadParameters parameters(heads, decoder.hidden_size(), decoder.vocab_size(), independent);
  for (size_t i = 0; i < parameters.values().size(); ++i) {
    const double uniform = Uniform(3, 0, static_cast<int64_t>(i), 0);
    parameters.values()[i] = size * static_cast<float>(uniform - 0.4);
  }
  return parameters;
}

double Loss(const Bench& bench, HeadGradient& gradient, const HiddenStates& states,
            std::span<const int64_t> rows, HeadParameters parameters) {
  std::vector<HeadScore> scores(parameters.heads());
  gradient.Prepare(bench.exec, parameters);
  gradient.Score(bench.exec, states, rows, scores);
  double loss = 0;
  for (const HeadScore& score : scores) loss += score.loss;
  return loss;
}

class HeadGradientTest : public testing::TestWithParam<bool> {};

// Every value of the gradient against the loss after a small step to both sides.
TEST_P(HeadGradientTest, MatchesFiniteDifferencesOfTheLoss) {
  const Bench bench;
  constexpr int64_t kHeads = 2;
  const HiddenStates states = bench.Read(Circles(3, 9), kHeads);
  HeadGradient gradient(bench.exec, *bench.decoder, bench.decoder->vocab_size(), DType::kF32);
  HeadParameters parameters = Random(kHeads, *bench.decoder, 0.8f, /*independent=*/GetParam());
  std::vector<int64_t> rows(states.rows());
  std::iota(rows.begin(), rows.end(), 0);

  HeadParameters sum(kHeads, parameters.hidden(), parameters.vocab());
  std::vector<HeadScore> scores(kHeads);
  gradient.Prepare(bench.exec, parameters);
  gradient.Add(bench.exec, states, rows, 0.5f, sum, scores);
  EXPECT_EQ(scores[0].rows, states.rows());
  EXPECT_EQ(scores[1].rows, states.rows() - 3) << "the last token of a piece has none behind it";
  EXPECT_NEAR(scores[0].loss + scores[1].loss, Loss(bench, gradient, states, rows, parameters),
              1e-4);

  const int64_t per_head = std::ssize(parameters.values()) / kHeads;
  int64_t large = 0;
  for (int64_t i = 0; i < std::ssize(parameters.values()); i += i % per_head < 32 ? 3 : 17) {
    const auto at = static_cast<size_t>(i);
    const auto shifted = [&](float by) {
      HeadParameters other = parameters;
      other.values()[at] += by;
      return Loss(bench, gradient, states, rows, other);
    };
    const double slope = (shifted(0.01f) - shifted(-0.01f)) / 0.02;
    EXPECT_NEAR(sum.values()[at], 0.5 * slope, 2e-3 + 0.01 * std::fabs(slope)) << i;
    large += std::fabs(slope) > 0.05 ? 1 : 0;
  }
  EXPECT_GT(large, 20) << "or this shows nothing";
}

INSTANTIATE_TEST_SUITE_P(Both, HeadGradientTest, testing::Bool());

TEST(HeadGradient, IsTheSameOnAnyNumberOfThreads) {
  std::vector<std::vector<float>> found;
  for (const int threads : {1, 3}) {
    const Bench bench(threads);
    const HiddenStates states = bench.Read(Circles(3, 40), 3);
    HeadGradient gradient(bench.exec, *bench.decoder, bench.decoder->vocab_size(), DType::kBF16);
    HeadParameters parameters = Random(3, *bench.decoder, 0.8f);
    HeadParameters sum(3, parameters.hidden(), parameters.vocab());
    std::vector<HeadScore> scores(3);
    std::vector<int64_t> rows(states.rows());
    std::iota(rows.begin(), rows.end(), 0);
    gradient.Prepare(bench.exec, parameters);
    gradient.Add(bench.exec, states, rows, 1, sum, scores);
    found.emplace_back(sum.values().begin(), sum.values().end());
  }
  EXPECT_EQ(found[0], found[1]);
}

// Tokens beyond the heads' reach are no targets.
TEST(HeadGradient, LooksAtNoOtherTokens) {
  const Bench bench;
  HiddenStates states(bench.decoder->hidden_size(), 2, 5);
  ReadPieces(bench.exec, *bench.decoder, Circles(1, 12), {}, states);
  for (int64_t row = 0; row < states.rows(); ++row) {
    const auto token = static_cast<int32_t>(4 * (row + 2) % 11);
    EXPECT_EQ(states.Target(row, 0), token < 5 ? token : -1);
    EXPECT_EQ(states.Next(row), 4 * (row + 1) % 11);
  }
}

}  // namespace
}  // namespace godwit::train::head_gradient_test
