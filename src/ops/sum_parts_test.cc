#include "ops/sum_parts.h"

#include "ops/test_support.h"

namespace godwit::ops::sum_parts_test {
namespace {

class SumPartsTest : public OpsTest {};

TEST_P(SumPartsTest, AddsInTheOrderOfParts) {
  for (const int64_t n : {1, 17, 4096, 9001}) {
    for (const int64_t parts : {1, 2, 5}) {
      const GappedMatrix x(parts, n, 1, -1e3, 1e3);
      std::vector<float> expected(n), sum(n);
      for (int64_t i = 0; i < n; ++i) {
        expected[i] = x.At(0, i);
        for (int64_t part = 1; part < parts; ++part) expected[i] += x.At(part, i);
      }
      SumParts(On(three_), x.view(), sum);
      EXPECT_EQ(sum, expected) << parts << " parts of " << n;
      GappedMatrix own = x;
      SumParts(On(one_), own.view(), own.view().RowSpan(0));
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(own.At(0, i), expected[i]);
    }
  }
}

GODWIT_FOR_EVERY_ISA(SumPartsTest);

}  // namespace
}  // namespace godwit::ops::sum_parts_test
