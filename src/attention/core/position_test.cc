#include "attention/core/position.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

namespace godwit::position_test {
namespace {

using Kind = RotaryScaling::Kind;

constexpr int64_t kPositions[] = {0, 1, 100, (1 << 24) + 1, 5'000'000};

struct Row {
  std::vector<float> cos, sin;
};

Row At(const RotaryEncoding& encoding, int64_t position) {
  const int64_t pairs = encoding.rotary_dim() / 2;
  Row row{std::vector<float>(pairs), std::vector<float>(pairs)};
  encoding.Fill(position, {row.cos.data(), 1, pairs, pairs}, {row.sin.data(), 1, pairs, pairs});
  return row;
}

// frequency(pair): radians per token, in long double. The tolerance is the rounding to float plus
// the error of a double angle of 1.6e7 radians. A float angle would be off by 1.
void ExpectFrequencies(const RotarySpec& spec, int64_t context, double magnitude,
                       const std::function<long double(int64_t pair)>& frequency) {
  const RotaryEncoding encoding(spec, context);
  ASSERT_EQ(encoding.rotary_dim(), spec.rotary_dim);
  const double tolerance = magnitude * (std::ldexp(1, -24) + 2e-8);
  for (const int64_t position : kPositions) {
    const Row row = At(encoding, position);
    for (int64_t pair = 0; pair < spec.rotary_dim / 2; ++pair) {
      const long double angle = static_cast<long double>(position) * frequency(pair);
      const auto i = static_cast<size_t>(pair);
      ASSERT_NEAR(row.cos[i], static_cast<double>(cosl(angle)) * magnitude, tolerance)
          << "position " << position << " pair " << pair;
      ASSERT_NEAR(row.sin[i], static_cast<double>(sinl(angle)) * magnitude, tolerance)
          << "position " << position << " pair " << pair;
    }
  }
}

long double Plain(const RotarySpec& spec, long double theta, int64_t pair) {
  return powl(theta,
              -2.0L * static_cast<long double>(pair) / static_cast<long double>(spec.rotary_dim));
}

TEST(RotaryEncodingTest, AnglesAreExactAtEveryPosition) {
  for (const int64_t dim : {2, 16, 20, 128}) {
    for (const double theta : {10'000.0, 500'000.0, 5e7}) {
      const RotarySpec spec{.rotary_dim = dim, .theta = theta};
      ExpectFrequencies(spec, 0, 1, [&](int64_t pair) { return Plain(spec, theta, pair); });
    }
  }
  const Row origin = At(RotaryEncoding({.rotary_dim = 16}, 0), 0);
  EXPECT_EQ(origin.cos, std::vector<float>(8, 1.0f));
  EXPECT_EQ(origin.sin, std::vector<float>(8, 0.0f));
}

TEST(RotaryEncodingTest, MeansAreThoseOfTheirPositions) {
  constexpr int64_t kTokens = 64, kFirst = 5'000'000;
  for (const double attention_factor : {1.0, 1.5}) {
    RotarySpec spec{.rotary_dim = 64, .theta = 1e6};
    if (attention_factor != 1) {
      spec.scaling = {.kind = RotaryScaling::Kind::kYarn,
                      .factor = 4,
                      .original_context = 32768,
                      .attention_factor = attention_factor};
    }
    const RotaryEncoding encoding(spec, 0);
    std::vector<float> mean_cos(2 * 32), mean_sin(2 * 32);
    encoding.FillMeans(kFirst, kTokens, {mean_cos.data(), 2, 32, 32}, {mean_sin.data(), 2, 32, 32});
    for (int64_t row = 0; row < 2; ++row) {
      std::vector<double> cos(32), sin(32);
      for (int64_t i = 0; i < kTokens; ++i) {
        const Row at = At(encoding, kFirst + row * kTokens + i);
        for (size_t pair = 0; pair < 32; ++pair) {
          cos[pair] += double{at.cos[pair]} / kTokens;
          sin[pair] += double{at.sin[pair]} / kTokens;
        }
      }
      for (size_t pair = 0; pair < 32; ++pair) {
        const size_t i = static_cast<size_t>(row) * 32 + pair;
        ASSERT_NEAR(mean_cos[i], cos[pair], 1e-6) << "pair " << pair;
        ASSERT_NEAR(mean_sin[i], sin[pair], 1e-6) << "pair " << pair;
      }
    }
  }
}

TEST(RotaryEncodingTest, FillsRowsInTurn) {
  const RotaryEncoding encoding({.rotary_dim = 6}, 0);
  std::vector<float> cos(15, 7), sin(15, 7);
  encoding.Fill(11, {cos.data(), 3, 3, 5}, {sin.data(), 3, 3, 5});
  for (int64_t i = 0; i < 3; ++i) {
    const Row row = At(encoding, 11 + i);
    for (int64_t pair = 0; pair < 5; ++pair) {
      const auto index = static_cast<size_t>(5 * i + pair);
      EXPECT_EQ(cos[index], pair < 3 ? row.cos[pair] : 7);
      EXPECT_EQ(sin[index], pair < 3 ? row.sin[pair] : 7);
    }
  }
}

TEST(RotaryEncodingTest, NoRotaryDimensions) {
  const RotaryEncoding encoding({.rotary_dim = 0}, 0);
  EXPECT_EQ(encoding.rotary_dim(), 0);
  EXPECT_TRUE(At(encoding, 3).cos.empty());
}

TEST(RotaryEncodingTest, LinearDividesPositions) {
  const RotarySpec spec{
      .rotary_dim = 32, .theta = 10'000, .scaling = {.kind = Kind::kLinear, .factor = 2.5}};
  ExpectFrequencies(spec, 0, 1, [&](int64_t pair) { return Plain(spec, 10'000, pair) / 2.5L; });
}

// By wavelength, as in Llama 3.1's own code.
TEST(RotaryEncodingTest, Llama3KeepsShortWavesAndDividesLongOnes) {
  const RotarySpec spec{.rotary_dim = 128,
                        .theta = 500'000,
                        .scaling = {.kind = Kind::kLlama3,
                                    .factor = 8,
                                    .original_context = 8192,
                                    .low_freq_factor = 1,
                                    .high_freq_factor = 4}};
  int64_t kept = 0, divided = 0, between = 0;
  ExpectFrequencies(spec, 0, 1, [&](int64_t pair) {
    const long double frequency = Plain(spec, 500'000, pair);
    const long double wave = 2 * std::numbers::pi_v<long double> / frequency;
    if (wave < 8192 / 4) return ++kept, frequency;
    if (wave > 8192) return ++divided, frequency / 8;
    ++between;
    const long double smooth = (8192 / wave - 1) / (4 - 1);
    return (1 - smooth) * frequency / 8 + smooth * frequency;
  });
  EXPECT_GT(kept, 0);
  EXPECT_GT(divided, 0);
  EXPECT_GT(between, 0);
}

// The scaling of Llama 4 Scout.
TEST(RotaryEncodingTest, Llama3WithoutARampDividesWavesBeyondTheContext) {
  const RotarySpec spec{.rotary_dim = 128,
                        .theta = 500'000,
                        .scaling = {.kind = RotaryScaling::Kind::kLlama3,
                                    .factor = 16,
                                    .original_context = 8192,
                                    .low_freq_factor = 1,
                                    .high_freq_factor = 1}};
  ExpectFrequencies(spec, 0, 1, [&](int64_t pair) {
    const long double plain = Plain(spec, 500'000, pair);
    return 2 * std::numbers::pi_v<long double> / plain > 8192 ? plain / 16 : plain;
  });
}

TEST(QueryTemperatureTest, RisesAfterEveryPeriod) {
  const QueryTemperature from_zero{.growth = 0.1, .tokens = 8192};
  const QueryTemperature from_one{.growth = 0.1, .tokens = 8192, .first = 1};
  const auto after = [](int periods) { return static_cast<float>(1 + 0.1 * std::log1p(periods)); };
  EXPECT_EQ(from_zero.At(8191), 1);
  EXPECT_EQ(from_zero.At(8192), after(1));
  EXPECT_EQ(from_one.At(8190), 1);
  EXPECT_EQ(from_one.At(8191), after(1));
  EXPECT_EQ(from_one.At(10'000'000), after(1220));
}

// The ramp over dimensions of the YaRN paper, section 3.2. Counting turns finds its bounds.
TEST(RotaryEncodingTest, YarnRampsBetweenTwoDimensions) {
  for (const bool truncate : {true, false}) {
    const RotarySpec spec{.rotary_dim = 64,
                          .theta = 10'000,
                          .scaling = {.kind = Kind::kYarn,
                                      .factor = 4,
                                      .original_context = 2048,
                                      .beta_fast = 32,
                                      .beta_slow = 1,
                                      .truncate = truncate,
                                      .attention_factor = 1.1386}};
    // Pair x (a real number) turns original_context * theta^(-x / 32) / (2 pi) times.
    const auto turns = [](long double x) {
      return 2048 * powl(10'000, -x / 32) / (2 * std::numbers::pi_v<long double>);
    };
    const auto pair_that_turns = [&](long double wanted) {
      long double low = 0, high = 64;
      for (int i = 0; i < 100; ++i) {
        ((turns((low + high) / 2) > wanted) ? low : high) = (low + high) / 2;
      }
      return low;
    };
    long double first = pair_that_turns(32), last = pair_that_turns(1);
    if (truncate) {
      first = floorl(first);
      last = ceill(last);
    }
    int64_t kept = 0, divided = 0;
    ExpectFrequencies(spec, 0, 1.1386, [&](int64_t pair) {
      const long double frequency = Plain(spec, 10'000, pair);
      const auto x = static_cast<long double>(pair);
      if (x <= first) return ++kept, frequency;
      if (x >= last) return ++divided, frequency / 4;
      const long double ramp = (x - first) / (last - first);
      return frequency / 4 * ramp + frequency * (1 - ramp);
    });
    EXPECT_GT(kept, 0);
    EXPECT_GT(divided, 0);
  }
}

TEST(RotaryEncodingTest, DynamicRaisesTheBaseBeyondTheOriginalContext) {
  const RotarySpec spec{.rotary_dim = 64,
                        .theta = 10'000,
                        .scaling = {.kind = Kind::kDynamic, .factor = 2, .original_context = 4096}};
  for (const int64_t context : {4097, 8192, 100'000}) {
    const long double stretch = 2.0L * static_cast<long double>(context) / 4096 - (2 - 1);
    const long double theta = 10'000 * powl(stretch, 64.0L / 62);
    ExpectFrequencies(spec, context, 1, [&](int64_t pair) { return Plain(spec, theta, pair); });
  }
}

TEST(RotaryEncodingTest, DynamicWithinTheOriginalContextIsPlain) {
  RotarySpec spec{.rotary_dim = 64, .theta = 10'000};
  const RotaryEncoding plain(spec, 0);
  spec.scaling = {.kind = Kind::kDynamic, .factor = 2, .original_context = 4096};
  for (const int64_t context : {0, 1, 4096}) {
    const RotaryEncoding dynamic(spec, context);
    for (const int64_t position : kPositions) {
      EXPECT_EQ(At(dynamic, position).cos, At(plain, position).cos);
      EXPECT_EQ(At(dynamic, position).sin, At(plain, position).sin);
    }
  }
}

// Beyond the original context, the long factors apply from the first position on. Scores are
// sharpened within it, too.
TEST(RotaryEncodingTest, LongRopeDividesEveryFrequencyByItsFactor) {
  RotarySpec spec{.rotary_dim = 6, .theta = 10000};
  spec.scaling = {.kind = Kind::kLongRope,
                  .original_context = 4096,
                  .attention_factor = 1.19,
                  .short_factors = {1, 1.05, 1.4},
                  .long_factors = {1.5, 8, 64}};
  const auto divided_by = [&](const std::vector<double>& factors) {
    return [&spec, factors](int64_t pair) {
      return Plain(spec, 10000, pair) / static_cast<long double>(factors[pair]);
    };
  };
  for (const int64_t context : {0, 4096}) {
    ExpectFrequencies(spec, context, 1.19, divided_by(spec.scaling.short_factors));
  }
  for (const int64_t context : {4097, 131072}) {
    ExpectFrequencies(spec, context, 1.19, divided_by(spec.scaling.long_factors));
  }
  EXPECT_TRUE(DependsOnContext(spec));
}

}  // namespace
}  // namespace godwit::position_test
