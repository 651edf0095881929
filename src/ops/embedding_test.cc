#include "ops/embedding.h"

#include "ops/test_support.h"

namespace godwit::ops::embedding_test {
namespace {

class EmbeddingTest : public OpsTest {};

TEST_P(EmbeddingTest, LooksUpAndWidens) {
  constexpr int64_t kVocab = 70;
  const std::vector<int32_t> tokens = {69, 0, 3, 3, 64, 63, 1};
  const auto rows = static_cast<int64_t>(tokens.size());
  for (const DType dtype : kFloatTypes) {
    for (const int64_t cols : {1, 7, 16, 33, 130}) {
      const RawWeight raw(dtype, kVocab, cols, 1);
      GappedMatrix plain(rows, cols), tied(rows, cols);
      Embed(On(three_), tokens, raw.AsTable(), plain.view());
      Embed(On(three_), tokens, raw.Pack(three_), tied.view());
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          ASSERT_EQ(plain.At(i, j), raw.At(tokens[i], j))
              << Name(dtype) << " row " << i << " column " << j;
        }
      }
      EXPECT_EQ(tied.Values(), plain.Values()) << Name(dtype);
      EXPECT_TRUE(plain.GapsIntact());
      EXPECT_TRUE(tied.GapsIntact());
    }
  }
}

TEST_P(EmbeddingTest, ManyTokensOnManyThreads) {
  constexpr int64_t kVocab = 9, kCols = 100;
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 1000; ++i) tokens.push_back(i % kVocab);
  const RawWeight raw(DType::kF16, kVocab, kCols, 2);
  GappedMatrix out(1000, kCols);
  Embed(On(three_), tokens, raw.AsTable(), out.view());
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(out.At(i, 99), raw.At(i % kVocab, 99));
}

// Ranks that hold parts of the vocabulary add up their rows.
TEST_P(EmbeddingTest, TokensOfOthersBecomeZeros) {
  const std::vector<int32_t> tokens = {0, 6, 7, 10, 11, 99};
  const RawWeight raw(DType::kBF16, 4, 20, 3);  // of the tokens 7 to 10
  GappedMatrix plain(6, 20), tied(6, 20);
  Embed(On(three_), tokens, raw.AsTable(), plain.view(), 7);
  Embed(On(three_), tokens, raw.Pack(three_), tied.view(), 7);
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      const bool held = i == 2 || i == 3;
      EXPECT_EQ(plain.At(i, j), held ? raw.At(tokens[i] - 7, j) : 0);
    }
  }
  EXPECT_EQ(tied.Values(), plain.Values());
}

TEST_P(EmbeddingTest, NoTokensAreNoWork) {
  const RawWeight raw(DType::kBF16, 4, 8, 3);
  GappedMatrix out(0, 8);
  Embed(On(one_), {}, raw.AsTable(), out.view());
  Embed(On(one_), {}, raw.Pack(one_), out.view());
}

GODWIT_FOR_EVERY_ISA(EmbeddingTest);

}  // namespace
}  // namespace godwit::ops::embedding_test
