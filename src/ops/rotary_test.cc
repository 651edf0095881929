#include "ops/rotary.h"

#include "ops/test_support.h"

namespace godwit::ops::rotary_test {
namespace {

class RotaryTest : public OpsTest {};

// All query heads of KV head 0 come token by token, then those of KV head 1. The test says so
// without the formula of HeadMajorRow.
TEST_P(RotaryTest, RotatesIntoHeadMajorOrder) {
  constexpr int64_t kTokens = 5;
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {4, 2}, {6, 2}, {3, 3}, {7, 1}}) {
    for (const auto& [head_dim, rotary_dim] :
         {std::pair{8, 8}, {12, 4}, {33, 32}, {64, 64}, {9, 0}}) {
      const AttentionShape shape{
          .heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .scale = 1};
      const GappedMatrix x(kTokens, heads * head_dim, 1);
      const GappedMatrix cos(kTokens, rotary_dim / 2, 2), sin(kTokens, rotary_dim / 2, 3);
      GappedMatrix out(kTokens * heads, head_dim);
      RotateHeadMajor(On(three_), shape, x.view(), {cos.view(), sin.view()}, out.view());

      const int64_t group = heads / kv_heads;
      int64_t row = 0;
      for (int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
        for (int64_t token = 0; token < kTokens; ++token) {
          for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head, ++row) {
            const auto in = [&, head_dim = head_dim](int64_t d) {
              return double{x.At(token, head * head_dim + d)};
            };
            const int64_t half = rotary_dim / 2;
            for (int64_t d = 0; d < half; ++d) {
              const double c = cos.At(token, d), s = sin.At(token, d);
              ASSERT_NEAR(out.At(row, d), in(d)*c - in(d + half) * s, 3 * kEpsilon);
              ASSERT_NEAR(out.At(row, d + half), in(d + half) * c + in(d)*s, 3 * kEpsilon);
            }
            for (int64_t d = rotary_dim; d < head_dim; ++d) ASSERT_EQ(out.At(row, d), in(d));
            ASSERT_EQ(HeadMajorRow(shape, kTokens, token, head), row);
          }
        }
      }
      EXPECT_TRUE(out.GapsIntact());
    }
  }
}

TEST_P(RotaryTest, ATokenDoesNotDependOnItsCompany) {
  const AttentionShape shape{.heads = 6, .kv_heads = 3, .head_dim = 20, .scale = 1};
  const GappedMatrix x(400, 120, 4);
  const GappedMatrix cos(400, 8, 5), sin(400, 8, 6);
  GappedMatrix all(400 * 6, 20);
  RotateHeadMajor(On(three_), shape, x.view(), {cos.view(), sin.view()}, all.view());
  for (const int64_t token : {0, 1, 77, 399}) {
    GappedMatrix one(6, 20);
    RotateHeadMajor(On(one_), shape, x.view().Rows(token, token + 1),
                    {cos.view().Rows(token, token + 1), sin.view().Rows(token, token + 1)},
                    one.view());
    for (int64_t head = 0; head < 6; ++head) {
      ASSERT_EQ(one.Row(head), all.Row(HeadMajorRow(shape, 400, token, head)));
    }
  }
}

TEST_P(RotaryTest, ScalesTheRowsOfAToken) {
  const AttentionShape shape{.heads = 4, .kv_heads = 2, .head_dim = 13, .scale = 1};
  const GappedMatrix x(5, 52, 4);
  const GappedMatrix cos(5, 4, 5), sin(5, 4, 6), scale(5, 1, 7);
  GappedMatrix plain(20, 13), scaled(20, 13);
  const RotaryTable table{cos.view(), sin.view()};
  RotateHeadMajor(On(three_), shape, x.view(), table, plain.view());
  RotateHeadMajor(On(three_), shape, x.view(), {cos.view(), sin.view(), scale.view()},
                  scaled.view());
  for (int64_t token = 0; token < 5; ++token) {
    for (int64_t head = 0; head < 4; ++head) {
      const int64_t row = HeadMajorRow(shape, 5, token, head);
      for (int64_t d = 0; d < 13; ++d) {
        ASSERT_EQ(scaled.At(row, d), plain.At(row, d) * scale.At(token, 0));
      }
    }
  }
  EXPECT_TRUE(scaled.GapsIntact());
}

TEST_P(RotaryTest, ScalesTheDimensionsOfRotatedRows) {
  const AttentionShape shape{.heads = 4, .kv_heads = 2, .head_dim = 13, .scale = 1};
  const GappedMatrix x(5, 52, 4);
  const GappedMatrix cos(5, 4, 5), sin(5, 4, 6), gain(1, 13, 7);
  GappedMatrix plain(20, 13), scaled(20, 13);
  const RotaryTable table{cos.view(), sin.view()};
  RotateHeadMajor(On(three_), shape, x.view(), table, plain.view());
  RotaryTable with_gain = table;
  with_gain.query_gain = gain.view().RowSpan(0);
  RotateHeadMajor(On(three_), shape, x.view(), with_gain.Rows(0, 5), scaled.view());
  for (int64_t row = 0; row < 20; ++row) {
    for (int64_t d = 0; d < 13; ++d) {
      ASSERT_EQ(scaled.At(row, d), plain.At(row, d) * gain.At(0, d));
    }
  }
  EXPECT_TRUE(scaled.GapsIntact());
}

GODWIT_FOR_EVERY_ISA(RotaryTest);

}  // namespace
}  // namespace godwit::ops::rotary_test
