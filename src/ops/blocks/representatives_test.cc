#include "ops/blocks/representatives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/kernel_test_support.h"

namespace godwit::ops::representatives_test {
namespace {

using kernels::kQuad;

const kernels::KernelTable& BestKernels() {
  static const kernels::KernelTable& best = *kernels::SelectIsa("").table;
  return best;
}

constexpr int64_t kHeadDims[] = {1, 5, 24, 128};
constexpr int64_t kPartTokens[] = {1, 3, 16, 64};

// The keys of a part [head_dim, stride], among NaN in place of the keys of other parts.
struct Part {
  Part(int64_t head_dim, int64_t tokens)
      : head_dim(head_dim),
        tokens(tokens),
        stride(tokens + 5),
        keys(static_cast<size_t>(head_dim * stride), kernels::kNan) {}

  float& At(int64_t d, int64_t j) { return keys[d * stride + j]; }
  float At(int64_t d, int64_t j) const { return keys[d * stride + j]; }
  void Fill(kernels::RandomFloats& random, float low, float high) {
    for (int64_t d = 0; d < head_dim; ++d) {
      for (int64_t j = 0; j < tokens; ++j) At(d, j) = random(low, high);
    }
  }

  int64_t head_dim, tokens, stride;
  std::vector<float> keys;
};

struct Representative {
  Representative(RepresentativeType type, const Part& part,
                 const kernels::KernelTable& kernels = BestKernels())
      : vectors((VectorsOf(type) * part.head_dim + kQuad - 1) / kQuad * kQuad) {
    kernels::Guarded<float> scratch(VectorsOf(type) * part.head_dim);
    scale = Represent(type, kernels, part.keys.data(), part.stride, part.tokens, part.head_dim,
                      scratch.data(), vectors.data());
    EXPECT_TRUE(scratch.GuardsIntact());
    EXPECT_TRUE(vectors.GuardsIntact());
    for (int64_t d = VectorsOf(type) * part.head_dim; d < vectors.size(); ++d) {
      EXPECT_EQ(vectors[d], 0) << "behind its end";
    }
  }

  kernels::Guarded<int8_t> vectors;
  float scale;
};

// The definitions in double. Quest gives centre and half-width; another test covers its box.
std::vector<double> Exact(RepresentativeType type, const Part& part) {
  std::vector<double> centres, spreads;
  for (int64_t d = 0; d < part.head_dim; ++d) {
    double low = part.At(d, 0), high = low, sum = 0, squares = 0;
    for (int64_t j = 0; j < part.tokens; ++j) {
      low = std::min(low, double{part.At(d, j)});
      high = std::max(high, double{part.At(d, j)});
      sum += part.At(d, j);
    }
    const auto n = static_cast<double>(part.tokens);
    for (int64_t j = 0; j < part.tokens; ++j) squares += std::pow(part.At(d, j) - sum / n, 2);
    switch (type) {
      case RepresentativeType::kMean:
        centres.push_back(sum / n);
        break;
      case RepresentativeType::kMax:
        centres.push_back(high);
        break;
      case RepresentativeType::kQuest:
        centres.push_back((low + high) / 2);
        spreads.push_back((high - low) / 2);
        break;
      case RepresentativeType::kMeanStd:
        centres.push_back(sum / n);
        spreads.push_back(std::sqrt(squares / n) / 2);
        break;
      case RepresentativeType::kSign:  // has no vectors
      case RepresentativeType::kFixed:
      case RepresentativeType::kDynamic:
        centres.push_back(part.At(d, 0));
        break;
    }
  }
  centres.insert(centres.end(), spreads.begin(), spreads.end());
  return centres;
}

template <typename Body>
void ForParts(uint32_t seed, float low, float high, const Body& body) {
  kernels::RandomFloats random(seed);
  for (const int64_t head_dim : kHeadDims) {
    for (const int64_t tokens : kPartTokens) {
      Part part(head_dim, tokens);
      part.Fill(random, low, high);
      body(part);
    }
  }
}

class RepresentativesTest : public testing::TestWithParam<RepresentativeKind> {};

// Covers parts whose numbers are all below zero, so that the largest is negative, too.
TEST_P(RepresentativesTest, AreWhatTheyAreCalledToHalfAStep) {
  for (const float high : {1.0f, -0.5f}) {
    ForParts(1, -2, high, [&](const Part& part) {
      const Representative found(GetParam().type, part);
      const std::vector<double> exact = Exact(GetParam().type, part);
      ASSERT_EQ(std::ssize(exact), GetParam().vectors * part.head_dim);
      // The spread of Quest is rounded up and includes the rounding error of the centre.
      const bool box = GetParam().type == RepresentativeType::kQuest;
      double largest = 0;
      for (int64_t i = 0; i < std::ssize(exact); ++i) {
        const double want = exact[i];
        const double steps = box && i >= part.head_dim ? 1.5 : 0.5;
        EXPECT_NEAR(found.vectors[i] * double{found.scale}, want, steps * 1.0001 * found.scale)
            << GetParam().name << " " << i << " of " << part.head_dim << " x " << part.tokens;
        largest = std::max(largest, std::abs(want));
      }
      EXPECT_NEAR(found.scale, largest / (box ? 125 : 127), 1e-5 * largest);
    });
  }
}

// Numbers that are too small for a scale become zeros, too.
TEST_P(RepresentativesTest, ZeroKeysGiveZeros) {
  for (const float key : {0.0f, -1e-40f}) {
    Part part(24, 16);
    kernels::RandomFloats random(2);
    part.Fill(random, key, key);
    const Representative found(GetParam().type, part);
    EXPECT_EQ(found.scale, 0);
    for (int64_t d = 0; d < found.vectors.size(); ++d) EXPECT_EQ(found.vectors[d], 0);
  }
}

// The position of the bad key does not matter, except for kinds that read only the first key.
TEST_P(RepresentativesTest, ScaleOfNonFiniteKeysIsNan) {
  const bool first_only = GetParam().type == RepresentativeType::kFixed ||
                          GetParam().type == RepresentativeType::kDynamic;
  for (const float bad : {kernels::kNan, kernels::kInfinity, -kernels::kInfinity}) {
    for (const int64_t at : {0, 7, 15}) {
      Part part(24, 16);
      kernels::RandomFloats random(3);
      part.Fill(random, -1, 1);
      part.At(20, at) = bad;
      const bool noticed = at == 0 || !first_only;
      EXPECT_EQ(std::isnan(Representative(GetParam().type, part).scale), noticed)
          << GetParam().name << ": " << bad << " at " << at;
    }
  }
}

TEST_P(RepresentativesTest, HaveTheSameBitsOnEveryInstructionSet) {
  ForParts(4, -1, 1, [&](const Part& part) {
    const Representative expected(GetParam().type, part, *kernels::AllIsas().back().table);
    for (const kernels::Isa& isa : kernels::AllIsas()) {
      if (!isa.supported()) continue;
      const Representative found(GetParam().type, part, *isa.table);
      EXPECT_EQ(kernels::Bits(found.scale), kernels::Bits(expected.scale)) << isa.name;
      EXPECT_TRUE(std::equal(found.vectors.data(), found.vectors.data() + found.vectors.size(),
                             expected.vectors.data()))
          << isa.name;
    }
  });
}

// All kinds except SIGN, which has no vectors.
INSTANTIATE_TEST_SUITE_P(Kinds, RepresentativesTest,
                         testing::ValuesIn(std::begin(kRepresentatives),
                                           std::end(kRepresentatives) - 1),
                         [](const auto& info) { return std::string(info.param.name); });

// Exact: integers of 8 bits times a float fit into a double. A box of integers around every key
// bounds the scores of every query.
void ExpectInBox(const Part& part) {
  const Representative box(RepresentativeType::kQuest, part);
  for (int64_t d = 0; d < part.head_dim; ++d) {
    const int centre = box.vectors[d], spread = box.vectors[part.head_dim + d];
    for (int64_t j = 0; j < part.tokens; ++j) {
      ASSERT_LE((centre - spread) * double{box.scale}, double{part.At(d, j)})
          << part.head_dim << " x " << part.tokens;
      ASSERT_GE((centre + spread) * double{box.scale}, double{part.At(d, j)})
          << part.head_dim << " x " << part.tokens;
    }
  }
}

TEST(QuestTest, TheBoxHoldsEveryKey) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    ForParts(seed, -1, 1, ExpectInBox);
    ForParts(seed, 0.9f, 1, ExpectInBox);
    ForParts(seed, -1e-20f, 1e-20f, ExpectInBox);
  }
}

// Parts with the worst rounding: all keys alike, and keys at the edges of a step.
TEST(QuestTest, TheBoxHoldsKeysOnItsBorder) {
  Part tiny(1, 2);  // a step is 0.004: beside the centre, -1e-30 is lost even in double
  tiny.At(0, 0) = -1e-30f;
  tiny.At(0, 1) = 1;
  ExpectInBox(tiny);
  kernels::RandomFloats random(5);
  for (int i = 0; i < 20000; ++i) {
    Part alike(5, 3), steps(5, 3);
    const float step = random(0.001f, 1);
    for (int64_t d = 0; d < 5; ++d) {
      const float x = random();
      for (int64_t j = 0; j < 3; ++j) {
        alike.At(d, j) = x;
        steps.At(d, j) = step * static_cast<float>(random.Integer(-125, 125));
      }
    }
    ExpectInBox(alike);
    ExpectInBox(steps);
  }
}

// The purpose of the box: (q, |q|) times the representative bounds all scores of int8 queries.
TEST(QuestTest, NoKeyScoresAboveItsPage) {
  kernels::RandomFloats random(6);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    ForParts(seed, -1, 1, [&](const Part& part) {
      const Representative box(RepresentativeType::kQuest, part);
      for (int query = 0; query < 10; ++query) {
        int64_t score = 0;
        std::vector<long double> keys(part.tokens);
        for (int64_t d = 0; d < part.head_dim; ++d) {
          const int64_t q = random.Integer(-127, 127);
          score += q * box.vectors[d] + std::abs(q) * box.vectors[part.head_dim + d];
          for (int64_t j = 0; j < part.tokens; ++j) {
            keys[j] += static_cast<long double>(q) * part.At(d, j);
          }
        }
        EXPECT_LE(std::ranges::max(keys), static_cast<long double>(score) * box.scale);
      }
    });
  }
}

// Three tiles of keys [head_dim, kTileTokens]. Dimensions differ in place and width. In the first,
// all keys but one are alike; in the second, all.
struct LearntKeys {
  explicit LearntKeys(int64_t dims)
      : head_dim(dims), levels(static_cast<size_t>(3 * dims)), centre(static_cast<size_t>(dims)) {
    kernels::RandomFloats random(static_cast<uint32_t>(dims));
    for (int64_t tile = 0; tile < kTiles; ++tile) {
      for (int64_t d = 0; d < dims; ++d) {
        for (int64_t j = 0; j < kernels::kTileTokens; ++j) {
          const float wide = (random(-2, 1) + static_cast<float>(tile)) * static_cast<float>(d + 1);
          keys.push_back(d > 1 ? wide : d == 0 && tile == 1 && j == 5 ? 3.0f : -1.0f);
        }
      }
    }
    LearnLevels(
        kTiles, [&](int64_t tile) { return Tile(tile); }, dims, levels.data());
    for (int64_t tile = 0; tile < kTiles; ++tile) {
      for (int64_t d = 0; d < dims; ++d) centre[d] += MeanOf(tile, d) / kTiles;
    }
  }
  double MeanOf(int64_t tile, int64_t d) const {
    const float* const row = Tile(tile) + d * kernels::kTileTokens;
    return std::accumulate(row, row + kernels::kTileTokens, 0.0) / kernels::kTileTokens;
  }
  const float* Tile(int64_t tile) const {
    return keys.data() + tile * head_dim * kernels::kTileTokens;
  }
  SignLevels Levels() const { return LevelsIn(levels.data(), head_dim); }

  static constexpr int64_t kTiles = 3;
  int64_t head_dim;
  std::vector<float> keys;
  std::vector<float> levels;
  std::vector<double> centre;
};

// A number is a key less the mean of its tile. Sides are split at that mean, and then midway
// between the levels.
TEST(SignsTest, TheirLevelsAreMeansOfWhatLiesOnEitherSide) {
  constexpr int64_t kKeys = LearntKeys::kTiles * kernels::kTileTokens;
  for (const int64_t head_dim : kHeadDims) {
    const LearntKeys learnt(head_dim);
    const auto number_of = [&](int64_t key, int64_t d) -> double {
      const int64_t tile = key / kernels::kTileTokens;
      return learnt.Tile(tile)[d * kernels::kTileTokens + key % kernels::kTileTokens] -
             learnt.MeanOf(tile, d);
    };
    double usual = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      for (int64_t key = 0; key < kKeys; ++key) {
        usual += std::abs(number_of(key, d)) / static_cast<double>(kKeys * head_dim);
      }
    }
    if (usual == 0) usual = 1;
    for (int64_t d = 0; d < head_dim; ++d) {
      double border = 1e-6, above = 0, below = 0;
      for (int round = 0; round < 2; ++round) {
        double sum_above = usual, sum_below = -usual, count_above = 1, count_below = 1;
        for (int64_t key = 0; key < kKeys; ++key) {
          const double number = number_of(key, d);
          (number > border ? sum_above : sum_below) += number;
          (number > border ? count_above : count_below) += 1;
        }
        above = sum_above / count_above;
        below = sum_below / count_below;
        border = (above + below) / 2;
      }
      const double near = 1e-5 * static_cast<double>(d + 1) + 1e-5 * usual;
      EXPECT_NEAR(learnt.Levels().centre[d], learnt.centre[d], near) << "dimension " << d;
      EXPECT_NEAR(learnt.Levels().above[d], above, near) << "dimension " << d;
      EXPECT_NEAR(learnt.Levels().below[d], below, near) << "dimension " << d;
    }
  }
}

TEST(SignsTest, LevelsWithoutKeysAreOnes) {
  std::vector<float> levels(6);
  LearnLevels(
      0, [](int64_t) { return nullptr; }, 2, levels.data());
  EXPECT_EQ(levels, (std::vector<float>{0, 0, 1, 1, -1, -1}));
}

// The offset gives the levels of a tile's keys the mean of its keys.
TEST(SignsTest, AreABitForANumber) {
  constexpr int64_t kTokens = kernels::kTileTokens;
  for (const int64_t head_dim : kHeadDims) {
    const LearntKeys learnt(head_dim);
    const SignLevels levels = learnt.Levels();
    for (const kernels::Isa& isa : kernels::AllIsas()) {
      if (!isa.supported()) continue;
      for (int64_t tile = 0; tile < LearntKeys::kTiles; ++tile) {
        kernels::Guarded<float> keys(head_dim * kTokens);
        std::copy_n(learnt.Tile(tile), keys.size(), keys.data());
        kernels::Guarded<uint8_t> signs(SignGroups(head_dim) * kTokens / 2);
        kernels::Guarded<int8_t> offset((head_dim + kQuad - 1) / kQuad * kQuad);
        const float scale =
            RepresentSigns(*isa.table, keys.data(), levels, head_dim, offset.data(), signs.data());
        EXPECT_TRUE(signs.GuardsIntact());
        EXPECT_TRUE(offset.GuardsIntact());
        int largest = 0;
        for (int64_t d = 0; d < offset.size(); ++d) {
          largest = std::max(largest, std::abs(int{offset[d]}));
          if (d >= head_dim) {
            EXPECT_EQ(offset[d], 0) << "behind its end";
          }
        }
        EXPECT_EQ(largest, scale == 0 ? 0 : 127);
        for (int64_t d = 0; d < 4 * SignGroups(head_dim); ++d) {
          const bool there = d < head_dim;
          const double mean = there ? learnt.MeanOf(tile, d) : 1;
          const double border =
              there ? mean + (double{levels.above[d]} + levels.below[d]) / 2 : mean;
          double said = 0;
          for (int64_t j = 0; j < kTokens; ++j) {
            const kernels::SignPlace place = kernels::SignAt(d / 4, j);
            const bool found = (signs[place.byte] >> (place.shift + d % 4) & 1) != 0;
            EXPECT_EQ(found, there && double{keys[d * kTokens + j]} > border)
                << isa.name << ": dimension " << d << " of " << head_dim << ", key " << j;
            if (there) said += (found ? levels.above[d] : levels.below[d]) / double{kTokens};
          }
          if (!there) continue;
          const double unit = levels.Unit(d);
          EXPECT_NEAR(double{levels.centre[d]} + offset[d] * double{scale} * unit + said, mean,
                      (0.51 * double{scale} + 1e-4) * unit)
              << isa.name << ": dimension " << d << " of " << head_dim;
        }
      }
    }
  }
}

// A number that is not finite makes the scale NaN, as with other kinds.
TEST(SignsTest, ScaleOfNonFiniteKeysIsNan) {
  constexpr int64_t kDim = 24;
  const LearntKeys learnt(kDim);
  for (const float bad : {kernels::kNan, kernels::kInfinity, -kernels::kInfinity}) {
    std::vector<float> keys(learnt.Tile(0), learnt.Tile(1));
    keys[20 * kernels::kTileTokens + 63] = bad;
    std::vector<int8_t> offset(kDim);
    std::vector<uint8_t> signs(SignGroups(kDim) * kernels::kTileTokens / 2);
    EXPECT_TRUE(std::isnan(RepresentSigns(BestKernels(), keys.data(), learnt.Levels(), kDim,
                                          offset.data(), signs.data())));
  }
}

}  // namespace
}  // namespace godwit::ops::representatives_test
