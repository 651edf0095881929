#include "quant/row_sample.h"

#include <gtest/gtest.h>

namespace godwit::quant::row_sample_test {
namespace {

// The numbers of the kept rows among `n`.
std::vector<float> Kept(int n, int64_t capacity) {
  RowSample sample(capacity);
  for (int i = 0; i < n; ++i) {
    const float row[] = {static_cast<float>(i), static_cast<float>(-i)};
    if (sample.WantsNext()) sample.Add(row);
  }
  std::vector<float> kept;
  for (int64_t i = 0; i < sample.rows().rows; ++i) {
    kept.push_back(sample.rows().Row(i)[0]);
    EXPECT_EQ(sample.rows().Row(i)[1], -kept.back());
  }
  return kept;
}

TEST(RowSample, KeepsAllThatFit) {
  EXPECT_EQ(Kept(0, 4), std::vector<float>{});
  EXPECT_EQ(Kept(4, 4), (std::vector<float>{0, 1, 2, 3}));
}

TEST(RowSample, ThinsOutEvenly) {
  EXPECT_EQ(Kept(5, 4), (std::vector<float>{0, 2, 4}));
  EXPECT_EQ(Kept(8, 4), (std::vector<float>{0, 2, 4, 6}));
  EXPECT_EQ(Kept(9, 4), (std::vector<float>{0, 4, 8}));
  EXPECT_EQ(Kept(1000, 4), (std::vector<float>{0, 256, 512, 768}));
}

TEST(RowSample, OddCapacity) {
  EXPECT_EQ(Kept(4, 3), (std::vector<float>{0, 2}));
  EXPECT_EQ(Kept(5, 3), (std::vector<float>{0, 2, 4}));
}

}  // namespace
}  // namespace godwit::quant::row_sample_test
