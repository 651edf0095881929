#include "sampling/sampler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <new>

#include "base/error.h"
#include "base/rng.h"
#include "sampling/test_support.h"

namespace {
thread_local int64_t allocations = 0;
}  // namespace

// Counting allocations is the one way to show that sampling makes none. The operator is not
// inlined: GCC warns of a mismatch between new and free when it inlines only one of the two.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace godwit::sampler_test {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kVocab = 1000;

SamplerOptions Plain() {
  SamplerOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  return options;
}

int32_t SampleOnce(const SamplerOptions& options, std::vector<float> logits,
                   const std::vector<int32_t>& history = {}, int64_t position = 0) {
  Sampler sampler(options, static_cast<int32_t>(logits.size()));
  return sampler.Sample(logits, history, /*sequence=*/0, position);
}

std::map<int32_t, double> DistributionOf(const SamplerOptions& options, std::vector<float> logits) {
  Sampler sampler(options, static_cast<int32_t>(logits.size()));
  std::map<int32_t, double> result;
  for (const Candidate& c : sampler.Distribution(logits, {})) result[c.token] = c.probability;
  return result;
}

TEST(Sampler, GreedyTakesTheFirstMaximum) {
  SamplerOptions options;
  options.temperature = 0;
  EXPECT_EQ(SampleOnce(options, {1, 7, -3, 7}), 1);
  EXPECT_EQ(SampleOnce(options, {-INFINITY, -INFINITY, -1e30f}), 2);
  options.logit_bias = {{1, -INFINITY}};
  EXPECT_EQ(SampleOnce(options, {1, 7, -3, 7}), 3);
  options.repeat_penalty = 10;
  EXPECT_EQ(SampleOnce(options, {1, 7, -3, 7}, /*history=*/{3}), 0);
  EXPECT_EQ(DistributionOf(options, {1, 7, -3, 7}), (std::map<int32_t, double>{{3, 1.0}}));
}

// Each step in its plainest form, on a full sort, one after the other: token -> probability.
std::map<int32_t, double> ByDefinition(const SamplerOptions& options,
                                       const std::vector<float>& logits) {
  struct Token {
    double logit;
    int32_t id;
    double p = 0;
  };
  std::vector<Token> rest;
  for (const float logit : logits) rest.push_back({logit, static_cast<int32_t>(rest.size())});
  std::ranges::sort(rest, [](const Token& a, const Token& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
  const auto normalize = [&] {
    double sum = 0;
    for (const Token& t : rest) sum += std::exp(t.logit - rest.front().logit);
    for (Token& t : rest) t.p = std::exp(t.logit - rest.front().logit) / sum;
  };
  for (const SamplerStep step : options.steps) {
    normalize();
    if (step == SamplerStep::kTopK && options.top_k > 0) {
      rest.resize(std::min(rest.size(), static_cast<size_t>(options.top_k)));
    } else if (step == SamplerStep::kTopP && options.top_p < 1) {
      double mass = 0;
      size_t nucleus = 0;
      while (nucleus < rest.size() && mass < options.top_p) mass += rest[nucleus++].p;
      rest.resize(nucleus);
    } else if (step == SamplerStep::kMinP) {
      const double least = options.min_p * rest.front().p;
      std::erase_if(rest, [&](const Token& t) { return t.p < least; });
    } else if (step == SamplerStep::kEta) {
      double entropy = 0;
      for (const Token& t : rest) entropy -= t.p * std::log(t.p);
      const double eta =
          std::min<double>(options.eta, std::sqrt(double{options.eta}) * std::exp(-entropy));
      std::erase_if(rest, [&](const Token& t) { return t.p < eta; });
    } else if (step == SamplerStep::kTemperature) {
      for (Token& t : rest) t.logit /= options.temperature;
    }
  }
  normalize();
  std::map<int32_t, double> distribution;
  for (const Token& t : rest) distribution[t.id] = t.p;
  return distribution;
}

TEST(Sampler, AgreesWithTheDefinitionInEveryOrder) {
  using enum SamplerStep;
  const std::vector<SamplerStep> orders[] = {SamplerOptions().steps,
                                             {kTemperature, kTopK, kTopP, kMinP, kEta},
                                             {kTopP, kTemperature, kTopK},
                                             {kEta, kMinP, kTopK, kTopP},
                                             {kMinP, kTopP, kEta, kTemperature, kTopK},
                                             {kTemperature},
                                             {}};
  for (const auto& order : orders) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      SCOPED_TRACE(fmt::format("seed {}, order {}", seed, &order - orders));
      SamplerOptions options;
      options.steps = order;
      options.temperature = static_cast<float>(0.3 + Uniform(seed, 0, 0, 0) * 1.5);
      options.top_k = seed % 3 == 0 ? 0 : static_cast<int>(1 + Uniform(seed, 0, 0, 1) * 200);
      options.top_p = seed % 4 == 0 ? 1 : static_cast<float>(0.3 + Uniform(seed, 0, 0, 2) * 0.69);
      options.min_p = seed % 5 == 0 ? 0 : static_cast<float>(Uniform(seed, 0, 0, 3) * 0.1);
      options.eta = seed % 2 == 0 ? 0 : static_cast<float>(Uniform(seed, 0, 0, 4) * 0.01);
      const std::vector<float> logits = RandomLogits(kVocab, seed);
      const std::map<int32_t, double> expected = ByDefinition(options, logits);
      const std::map<int32_t, double> actual = DistributionOf(options, logits);
      ASSERT_EQ(actual.size(), expected.size());
      for (const auto& [token, probability] : expected) {
        ASSERT_TRUE(actual.contains(token));
        EXPECT_NEAR(actual.at(token), probability, 1e-9);
      }
    }
  }
}

TEST(Sampler, TheDefaultOrderIsLlamaCpps) {
  EXPECT_EQ(SamplerOptions().steps, ParseSteps("penalties;top_k;top_p;min_p;eta;temperature"));
  SamplerOptions options = Plain();
  options.temperature = 2;
  options.min_p = 0.1f;
  // exp(-3) of the likeliest is below a tenth of it, exp(-3 / 2) above.
  EXPECT_EQ(DistributionOf(options, {3, 1, 0}).size(), 2u);
  options.steps = ParseSteps("temperature;min_p");
  EXPECT_EQ(DistributionOf(options, {3, 1, 0}).size(), 3u);
}

TEST(Sampler, AStepThatIsNotListedDoesNotRun) {
  SamplerOptions options;
  options.top_k = 1;
  options.repeat_penalty = 100;
  options.steps = {SamplerStep::kTemperature};
  Sampler sampler(options, 3);
  std::vector<float> logits = {3, 2, 1};
  const auto distribution = sampler.Distribution(logits, std::vector<int32_t>{0});
  ASSERT_EQ(distribution.size(), 3u);
  EXPECT_EQ(distribution[0].logit, 3);
}

TEST(Sampler, RELEASE_DrawsFollowTheDistribution) {
  SamplerOptions options;
  options.temperature = 0.9f;
  options.top_k = 20;
  options.seed = 42;
  const std::vector<float> logits = RandomLogits(kVocab, /*seed=*/8);
  const std::map<int32_t, double> expected = DistributionOf(options, logits);
  ASSERT_GT(expected.size(), 5u);

  constexpr int kDraws = 20000;
  std::map<int32_t, int> counts;
  Sampler sampler(options, kVocab);
  std::vector<float> scratch(logits.size());
  for (int64_t position = 0; position < kDraws; ++position) {
    scratch = logits;
    ++counts[sampler.Sample(scratch, {}, /*sequence=*/0, position)];
  }
  double chi_square = 0;
  for (const auto& [token, probability] : expected) {
    const double mean = probability * kDraws;
    chi_square += (counts[token] - mean) * (counts[token] - mean) / mean;
  }
  EXPECT_EQ(counts.size(), expected.size()) << "a token outside the distribution was drawn";
  // The bound: the mean of chi-square plus four standard deviations, with size - 1 degrees of
  // freedom.
  const double freedom = static_cast<double>(expected.size() - 1);
  EXPECT_LT(chi_square, freedom + 4 * std::sqrt(2 * freedom));
}

TEST(Sampler, DrawDependsOnKeyAndNotOnOrder) {
  SamplerOptions options = Plain();
  const std::vector<float> logits(kVocab, 0.0f);
  Sampler sampler(options, kVocab);
  auto draw = [&](Sampler& with, uint64_t sequence, int64_t position) {
    std::vector<float> scratch = logits;
    return with.Sample(scratch, {}, sequence, position);
  };
  std::vector<int32_t> forwards;
  for (int64_t i = 0; i < 50; ++i) forwards.push_back(draw(sampler, 0, i));
  std::vector<int32_t> backwards;
  for (int64_t i = 49; i >= 0; --i) backwards.insert(backwards.begin(), draw(sampler, 0, i));
  EXPECT_EQ(forwards, backwards);

  options.seed = 1;
  Sampler other_seed(options, kVocab);
  int same_sequence = 0;
  int same_seed = 0;
  for (int64_t i = 0; i < 50; ++i) {
    same_sequence += draw(sampler, 1, i) == forwards[i];
    same_seed += draw(other_seed, 0, i) == forwards[i];
  }
  EXPECT_LT(same_sequence, 3);
  EXPECT_LT(same_seed, 3);
}

TEST(Sampler, TinyTemperatureIsGreedyAndHugeIsFlat) {
  SamplerOptions options = Plain();
  options.temperature = 1e-40f;
  EXPECT_EQ(SampleOnce(options, {1e30f, 3e38f, -3e38f, 0}), 1);
  options.temperature = 1e38f;
  for (const auto& [token, p] : DistributionOf(options, {1, 2, 3, 4})) EXPECT_NEAR(p, 0.25, 1e-9);
}

TEST(Sampler, BrokenLogitsAreNamed) {
  for (const float temperature : {0.0f, 0.8f}) {
    SamplerOptions options;
    options.temperature = temperature;
    for (const float bad : {NAN, -NAN, INFINITY}) {
      try {
        SampleOnce(options, {1, 2, bad, 4});
        ADD_FAILURE() << "accepted " << bad;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kFormat);
        EXPECT_THAT(error.what(), HasSubstr("token 2"));
      }
    }
    EXPECT_THROW(SampleOnce(options, {-INFINITY, -INFINITY}), Error);
    EXPECT_THROW(SampleOnce(options, {NAN, NAN}), Error);
  }
}

TEST(Sampler, BanningEverythingIsTheUsersError) {
  SamplerOptions options;
  options.logit_bias = {{0, -INFINITY}, {1, -INFINITY}};
  try {
    SampleOnce(options, {1, 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
  }
}

TEST(Sampler, BadOptionsAreRefusedAtConstruction) {
  SamplerOptions options;
  options.top_p = NAN;
  EXPECT_THROW(Sampler(options, kVocab), Error);
}

TEST(Sampler, AllocatesNothing) {
  for (const int top_k : {0, 1, 40, 600}) {
    SamplerOptions options;
    options.top_k = top_k;
    options.repeat_penalty = 1.1f;
    options.eta = 0.001f;
    Sampler sampler(options, kVocab);
    std::vector<float> logits = RandomLogits(kVocab, /*seed=*/1);
    const std::vector<int32_t> history = {1, 2, 3, 2, 1};
    const int64_t before = allocations;
    for (int64_t position = 0; position < 100; ++position) {
      sampler.Sample(logits, history, /*sequence=*/0, position);
    }
    EXPECT_EQ(allocations, before) << "top_k " << top_k;
  }
}

TEST(Draw, EdgesOfTheUnitInterval) {
  const std::vector<Candidate> candidates = {{5, 0, 0.0}, {6, 0, 0.5}, {7, 0, 0.4}, {8, 0, 0.0}};
  EXPECT_EQ(Draw(candidates, 0.0), 6);
  EXPECT_EQ(Draw(candidates, 0.4999), 6);
  EXPECT_EQ(Draw(candidates, 0.5), 7);
  EXPECT_EQ(Draw(candidates, 0.99999), 7);
}

}  // namespace
}  // namespace godwit::sampler_test
