#include "kernels/kernel_test_support.h"

namespace godwit::kernels::values_of_keys_test {
namespace {

class ValuesOfKeysTest : public IsaTest {
 protected:
  // Tests keys of any bits. In a float type some are NaN.
  template <class T>
  void ExpectValues(DType dtype, int64_t head_dim, int64_t first, uint8_t excess) const {
    const int64_t depth = KvDepth(dtype), dim = head_dim - first;
    Guarded<T> k(KeyElements(depth, head_dim)), v(kTileTokens * PadToLanes(dim));
    RandomFloats random(static_cast<uint32_t>(head_dim));
    for (int64_t i = 0; i < k.size(); ++i) k[i] = static_cast<T>(random.Integer(0, 1 << 30));
    // Zeros lie behind a stored key.
    for (int64_t d = head_dim; d % depth != 0; ++d) {
      for (int64_t j = 0; j < kTileTokens; ++j) k[KeyAt(depth, d, j)] = excess;
    }
    table().values_of_keys(
        {.dtype = dtype, .k = k.data(), .head_dim = head_dim, .first = first, .v = v.data()});
    for (int64_t j = 0; j < kTileTokens; ++j) {
      for (int64_t d = 0; d < PadToLanes(dim); ++d) {
        const T key = d < dim ? static_cast<T>(k[KeyAt(depth, first + d, j)] - excess) : T{0};
        ASSERT_EQ(v[ValueAt(depth, dim, j, d)], key)
            << Name(dtype) << ", " << head_dim << " from " << first << ": token " << j
            << ", dimension " << d;
      }
    }
    EXPECT_TRUE(v.GuardsIntact());
  }
};
GODWIT_FOR_EVERY_ISA(ValuesOfKeysTest);

TEST_P(ValuesOfKeysTest, AreTheirNumbersTokenByToken) {
  for (const int64_t head_dim : {1, 2, 3, 14, 16, 17, 31, 70, 80, 128, 576}) {
    for (const int64_t first : {0, 4, 12, 64}) {
      if (first >= head_dim) continue;
      ExpectValues<uint32_t>(DType::kF32, head_dim, first, 0);
      ExpectValues<uint16_t>(DType::kF16, head_dim, first, 0);
      ExpectValues<uint16_t>(DType::kBF16, head_dim, first, 0);
      ExpectValues<uint8_t>(DType::kI8, head_dim, first, 128);
    }
  }
}

}  // namespace
}  // namespace godwit::kernels::values_of_keys_test
