#include "ops/copy_rows.h"

#include "ops/test_support.h"

namespace godwit::ops::copy_rows_test {
namespace {

class CopyRowsTest : public OpsTest {};

TEST_P(CopyRowsTest, CopiesColumnsOfWiderMatrices) {
  for (const int64_t rows : {1, 700}) {
    const GappedMatrix from(rows, 60, 1);
    GappedMatrix to(rows, 50, 2);
    const GappedMatrix before = to;
    CopyRows(On(three_), from.view().Cols(13, 33), to.view().Cols(7, 27));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < 50; ++col) {
        const bool copied = col >= 7 && col < 27;
        ASSERT_EQ(to.At(row, col), copied ? from.At(row, col + 6) : before.At(row, col));
      }
    }
    EXPECT_TRUE(to.GapsIntact());
  }
  CopyRows(On(three_), {}, {});
}

// All heads of KV head 0 come token by token, then those of KV head 1.
TEST_P(CopyRowsTest, CopiesATokenOutOfHeadMajorOrder) {
  const AttentionShape shape{.heads = 6, .kv_heads = 2, .head_dim = 5, .scale = 1};
  const GappedMatrix q(4 * 6, 5, 3);
  std::vector<float> token(30);
  CopyToken(shape, 4, 2, q.view(), token);
  for (int64_t head = 0; head < 6; ++head) {
    for (int64_t d = 0; d < 5; ++d) {
      EXPECT_EQ(token[head * 5 + d], q.At(head / 3 * 12 + 2 * 3 + head % 3, d));
    }
  }
}

GODWIT_FOR_EVERY_ISA(CopyRowsTest);

}  // namespace
}  // namespace godwit::ops::copy_rows_test
