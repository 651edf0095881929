#include "ops/moe.h"

#include <algorithm>
#include <numeric>

#include "ops/test_support.h"

namespace godwit::ops::moe_test {
namespace {

struct Shape {
  int64_t experts, per_token, hidden, intermediate;
  bool shares_among_chosen = true;
  bool gpt_oss = false;  // its unit, and biases
  bool scales_input = false;
  float near_scores = 0;
  bool gated = true;  // else relu^2
};

// Weights as stored, and packed.
struct TestMoe {
  TestMoe(const Shape& shape, DType dtype, ThreadPool& pool)
      : shape(shape), router(DType::kF32, shape.experts, shape.hidden, 1) {
    for (int64_t i = 0; i < shape.experts; ++i) {
      const auto seed = static_cast<uint32_t>(2 * i + 10);
      up.emplace_back(dtype, (shape.gated ? 2 : 1) * shape.intermediate, shape.hidden, seed);
      down.emplace_back(dtype, shape.hidden, shape.intermediate, seed + 1);
      weights.experts.push_back({.up = up.back().Pack(pool), .down = down.back().Pack(pool)});
      if (!shape.gpt_oss) continue;
      AddBias(seed, weights.experts.back().up);
      AddBias(seed + 1, weights.experts.back().down);
    }
    weights.router = router.Pack(pool);
    if (shape.gpt_oss) AddBias(9, weights.router);
  }

  static void AddBias(uint32_t seed, Weight& weight) {
    RandomFloats random(seed);
    for (int64_t i = 0; i < weight.outputs; ++i) weight.bias.push_back(random());
  }

  // The output of one token, one expert after another, in double.
  std::vector<double> Oracle(const std::vector<float>& x) const {
    const auto dot = [&](const RawWeight& w, const Weight& packed, int64_t row,
                         const auto& values) {
      double sum = packed.bias.empty() ? 0 : packed.bias[row];
      for (size_t i = 0; i < values.size(); ++i)
        sum += w.At(row, static_cast<int64_t>(i)) * values[i];
      return sum;
    };
    std::vector<std::pair<double, int64_t>> scores;
    for (int64_t i = 0; i < shape.experts; ++i)
      scores.emplace_back(-dot(router, weights.router, i, x), i);
    std::ranges::sort(scores);
    const auto chosen = static_cast<size_t>(shape.per_token);
    double sum = 0;
    for (const auto& [score, expert] :
         std::span(scores).first(shape.shares_among_chosen ? chosen : scores.size())) {
      sum += std::exp(-score);
    }
    std::vector<double> shares;
    for (size_t rank = 0; rank < chosen; ++rank) {
      const double best = -scores[rank].first;
      double of_near = 0;  // those behind it, near its own score
      for (size_t i = rank; i < scores.size(); ++i) {
        const double score = -scores[i].first;
        const double part = (best - score) / std::max(std::abs(score), best);
        if (part <= shape.near_scores) of_near += std::exp(score - best);
      }
      shares.push_back(shape.scales_input      ? 1
                       : shape.near_scores > 0 ? 1 / of_near
                                               : std::exp(best) / sum);
    }
    scores.resize(chosen);
    std::vector<double> out(x.size());
    for (size_t rank = 0; rank < chosen; ++rank) {
      const auto& [score, index] = scores[rank];
      const double share = shares[rank];
      const auto expert = static_cast<size_t>(index);
      std::vector<double> read(x.begin(), x.end());
      const double factor = shape.scales_input ? 1 / (1 + std::exp(score)) : 1;
      for (double& value : read) value *= factor;
      std::vector<double> inner;
      for (int64_t i = 0; i < shape.intermediate; ++i) {
        const Expert& packed = weights.experts[expert];
        const double gate = dot(up[expert], packed.up, i, read);
        if (!shape.gated) {
          inner.push_back(std::max(gate, 0.0) * std::max(gate, 0.0));
          continue;
        }
        const double of_up = dot(up[expert], packed.up, i + shape.intermediate, read);
        inner.push_back(shape.gpt_oss ? Clamped(gate, of_up)
                                      : gate / (1 + std::exp(-gate)) * of_up);
      }
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] +=
            share * dot(down[expert], weights.experts[expert].down, static_cast<int64_t>(i), inner);
      }
    }
    return out;
  }

  static constexpr ClampedSwiglu kUnit = {.alpha = 1.5f, .limit = 0.5f};
  static double Clamped(double gate, double up) {
    const double limit = kUnit.limit, below = std::min(gate, limit);
    return (std::clamp(up, -limit, limit) + 1) * below / (1 + std::exp(-kUnit.alpha * below));
  }

  Shape shape;
  RawWeight router;
  std::vector<RawWeight> up, down;
  MoeWeights weights;
};

class MoeTest : public OpsTest {
 protected:
  GappedMatrix Run(const TestMoe& moe, MatrixView<const float> x, ThreadPool& pool) {
    GappedMatrix out(x.rows, x.cols);
    MixtureOfExperts(
        On(pool), x, moe.weights,
        {.per_token = moe.shape.per_token,
         .shares_among_chosen = moe.shape.shares_among_chosen,
         .choice = {.scales_input = moe.shape.scales_input, .near_scores = moe.shape.near_scores},
         .gated = moe.shape.gated,
         .activation = moe.shape.gated ? Activation::kSilu : Activation::kSquaredRelu,
         .clamped = moe.shape.gpt_oss ? std::optional(TestMoe::kUnit) : std::nullopt},
        out.view());
    EXPECT_TRUE(out.GapsIntact());
    return out;
  }
};

TEST_P(MoeTest, IsTheSumOfTheBestExperts) {
  for (const Shape& shape :
       {Shape{1, 1, 5, 3}, Shape{3, 1, 17, 9}, Shape{8, 2, 33, 20}, Shape{5, 5, 12, 7},
        Shape{8, 3, 33, 20, /*shares_among_chosen=*/false},
        Shape{8, 3, 33, 20, /*shares_among_chosen=*/true, /*gpt_oss=*/true},
        Shape{8, 2, 33, 20, /*shares_among_chosen=*/true, /*gpt_oss=*/false,
              /*scales_input=*/true},
        Shape{.experts = 8, .per_token = 2, .hidden = 33, .intermediate = 20, .near_scores = 0.4f},
        Shape{.experts = 6, .per_token = 2, .hidden = 33, .intermediate = 20, .gated = false}}) {
    for (const DType dtype : {DType::kF32, DType::kF16}) {
      const TestMoe moe(shape, dtype, three_);
      const GappedMatrix x(40, shape.hidden, 3);
      const GappedMatrix out = Run(moe, x.view(), three_);
      for (int64_t token = 0; token < 40; ++token) {
        const auto expected = moe.Oracle(x.Row(token));
        for (int64_t i = 0; i < shape.hidden; ++i) {
          ASSERT_NEAR(out.At(token, i), expected[i], 2e-5)
              << shape.experts << " experts, token " << token;
        }
      }
    }
  }
}

// A token's bits are the same for any cut of the tokens and any threads, also with weights for
// which activations are rounded.
TEST_P(MoeTest, ATokenDoesNotDependOnItsCompany) {
  constexpr int64_t kTokens = 130;
  for (const DType dtype : kFloatTypes) {
    const TestMoe moe({6, 2, 40, 24}, dtype, three_);
    const GappedMatrix x(kTokens, 40, 4);
    const GappedMatrix all = Run(moe, x.view(), one_);
    ASSERT_EQ(Run(moe, x.view(), three_).Values(), all.Values());
    for (const int64_t chunk : {1, 7, 64}) {
      for (int64_t begin = 0; begin < kTokens; begin += chunk) {
        const int64_t end = std::min(kTokens, begin + chunk);
        const GappedMatrix few = Run(moe, x.view().Rows(begin, end), three_);
        for (int64_t i = begin; i < end; ++i) ASSERT_EQ(few.Row(i - begin), all.Row(i));
      }
    }
  }
}

// Ranks hold some experts each, and choose among all.
TEST_P(MoeTest, PartsAddUpToTheWhole) {
  for (const bool gpt_oss : {false, true}) {
    const Shape shape{
        .experts = 7, .per_token = 3, .hidden = 40, .intermediate = 20, .gpt_oss = gpt_oss};
    TestMoe moe(shape, DType::kF32, three_);
    const GappedMatrix x(50, shape.hidden, 3);
    const GappedMatrix whole = Run(moe, x.view(), three_);
    std::vector<double> sum(50 * shape.hidden);
    for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}, {4, 7}}) {
      TestMoe part(shape, DType::kF32, three_);
      auto& experts = part.weights.experts;
      experts.erase(experts.begin() + end, experts.end());
      experts.erase(experts.begin(), experts.begin() + begin);
      part.weights.first_expert = begin;
      const GappedMatrix rows = Run(part, x.view(), begin == 0 ? one_ : three_);
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] +=
            rows.At(static_cast<int64_t>(i) / shape.hidden, static_cast<int64_t>(i) % shape.hidden);
      }
    }
    for (size_t i = 0; i < sum.size(); ++i) {
      const double expected =
          whole.At(static_cast<int64_t>(i) / shape.hidden, static_cast<int64_t>(i) % shape.hidden);
      ASSERT_NEAR(sum[i], expected, 1e-5 * (1 + std::fabs(expected)));
    }
  }
}

TEST_P(MoeTest, EqualScoresTakeTheFirstExperts) {
  TestMoe moe({4, 2, 6, 5}, DType::kF32, one_);
  const std::vector<float> zeros(6);
  moe.weights.router = PackWeight(
      one_, DType::kF32, 4, 6, [&](int64_t) -> const void* { return zeros.data(); }, DType::kF32);
  const GappedMatrix x(1, 6, 5);
  const GappedMatrix out = Run(moe, x.view(), one_);
  moe.weights.experts.resize(2);
  moe.weights.router = PackWeight(
      one_, DType::kF32, 2, 6, [&](int64_t) -> const void* { return zeros.data(); }, DType::kF32);
  EXPECT_EQ(Run(moe, x.view(), one_).Values(), out.Values());
}

TEST_P(MoeTest, ScoresThatAreNoNumbersStayWithTheirToken) {
  const TestMoe moe({5, 2, 16, 6}, DType::kF32, three_);
  GappedMatrix x(9, 16, 6);
  const GappedMatrix good = Run(moe, x.view(), one_);
  x.view().Row(4)[7] = kNan;
  const GappedMatrix out = Run(moe, x.view(), three_);
  for (int64_t token = 0; token < 9; ++token) {
    if (token == 4) {
      for (const float value : out.Row(token)) EXPECT_TRUE(std::isnan(value));
    } else {
      EXPECT_EQ(out.Row(token), good.Row(token));
    }
  }
}

// A bias chooses, and shares know nothing of it. Parts are at most 1, so a bias of 2 is stronger.
TEST_P(MoeTest, ABiasIsAddedToPartsOfTheSoftmax) {
  TestMoe moe({4, 2, 6, 5}, DType::kF32, one_);
  const GappedMatrix x(9, 6, 5);
  const auto run = [&](ExpertScore score, std::vector<float> bias) {
    moe.weights.choice_bias = std::move(bias);
    GappedMatrix out(9, 6);
    MixtureOfExperts(On(one_), x.view(), moe.weights, {.per_token = 2, .choice = {.score = score}},
                     out.view());
    return out.Values();
  };
  const std::vector<float> plain = run(ExpertScore::kLogit, {});
  const std::vector<float> parts = run(ExpertScore::kPart, {});
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(parts[i], plain[i], 1e-5);
  const std::vector<float> chosen = run(ExpertScore::kPart, {0, 2, 0, 2});
  moe.weights.choice_bias.clear();
  moe.weights.experts.erase(moe.weights.experts.begin() + 2);
  moe.weights.experts.erase(moe.weights.experts.begin());
  moe.weights.router = PackWeight(
      one_, DType::kF32, 2, 6,
      [&](int64_t row) -> const void* { return moe.router.Row(2 * row + 1); }, DType::kF32);
  const std::vector<float> expected = Run(moe, x.view(), one_).Values();
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(chosen[i], expected[i], 1e-5);
}

TEST_P(MoeTest, NoTokensAreNoWork) {
  const TestMoe moe({2, 1, 8, 4}, DType::kBF16, one_);
  const GappedMatrix x(0, 8);
  Run(moe, x.view(), one_);
}

GODWIT_FOR_EVERY_ISA(MoeTest);

}  // namespace
}  // namespace godwit::ops::moe_test
