#include "cuda/ops/store_keys.h"

#include "base/error.h"
#include "cuda/kernels/numbers.h"
#include "cuda/test_support.h"
#include "kernels/kernel_table.h"

namespace godwit::cuda::store_keys_test {
namespace {

using kernels::kTileTokens;

TEST(FloatToHalf, RoundsAsTheCpuDoes) {
  RandomFloats random(1);
  std::vector<float> numbers = {
      0,     0x1p-14f, 0x1p-24f,  0x1p-25f,     0x1.8p-24f,   65504,   65519.996f,
      65520, 1e30f,    kInfinity, 0x1.ffep-15f, 0x1.ffdp-15f, 0x1p-40f};
  for (int i = 0; i < 20000; ++i) {
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(random.Integer(0, 0x7f7fffff))));
    numbers.push_back(std::ldexp(random(0.5f, 1), static_cast<int>(random.Integer(-26, 17))));
  }
  for (const float x : numbers) {
    ASSERT_EQ(FloatToHalf(x), ToF16(x).bits) << x;
    ASSERT_EQ(FloatToHalf(-x), ToF16(-x).bits) << -x;
  }
  EXPECT_TRUE(std::isnan(ToFloat(F16{FloatToHalf(kNan)})));
}

TEST(HalfToFloat, WidensEveryHalf) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float expected = ToFloat(F16{half}), found = HalfToFloat(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found)) << bits;
    } else {
      ASSERT_EQ(Bits(found), Bits(expected)) << bits;
    }
  }
}

struct Heads {
  DType dtype;
  int64_t kv_heads, head_dim;
  int64_t depth() const { return kernels::KvDepth(dtype); }
  int64_t element() const { return static_cast<int64_t>(SizeOf(dtype)); }
  int64_t key_bytes() const { return kernels::KeyElements(depth(), head_dim) * element(); }
  int64_t head_bytes() const {
    return key_bytes() + kTileTokens * kernels::PadToLanes(head_dim) * element();
  }
};

constexpr int64_t kPosition = 62, kTokens = 70, kTiles = 3;

// The rows at kPosition and behind, in pages of zeros.
std::vector<uint8_t> Stored(TestGpu& gpu, const Heads& heads, const std::vector<float>& k,
                            const std::vector<float>& v, int32_t* out_of_range) {
  const int64_t page_bytes = heads.kv_heads * heads.head_bytes();
  const std::vector<uint8_t> zeros(kTiles * page_bytes);
  uint8_t* const memory = gpu.Put(zeros);
  const std::vector<uint8_t*> pages = {memory, memory + page_bytes, memory + 2 * page_bytes};
  const std::vector<int32_t> none = {0};
  int32_t* const flag = gpu.Put(none);
  StoreKeyRows(gpu.stream(), gpu.PutMatrix(k, heads.kv_heads * kTokens, heads.head_dim),
               gpu.PutMatrix(v, kTokens, heads.kv_heads * heads.head_dim), kPosition,
               {.pages = gpu.Put(pages),
                .head_bytes = heads.head_bytes(),
                .value_offset = heads.key_bytes(),
                .dtype = heads.dtype},
               flag);
  *out_of_range = gpu.Get(flag, 1)[0];
  return gpu.Get(memory, kTiles * page_bytes);
}

float Number(DType dtype, const uint8_t* numbers, int64_t i) {
  return ElementAt(dtype, numbers, i);
}

float Rounded(DType dtype, float x) {
  if (dtype == DType::kF32) return x;
  return dtype == DType::kF16 ? ToFloat(ToF16(x)) : ToFloat(ToBF16(x));
}

TEST(StoreKeyRows, PutsNumbersWhereAttentionReadsThem) {
  for (const Heads& heads : {Heads{DType::kF32, 2, 5}, Heads{DType::kF16, 1, 16},
                             Heads{DType::kBF16, 3, 33}, Heads{DType::kBF16, 1, 128}}) {
    const std::vector<float> k = RandomNumbers(heads.kv_heads * kTokens * heads.head_dim, 1);
    const std::vector<float> v = RandomNumbers(kTokens * heads.kv_heads * heads.head_dim, 2);
    int32_t out_of_range = 0;
    TestGpu forward(ThreadOrder::kAscending), backward(ThreadOrder::kDescending);
    const std::vector<uint8_t> pages = Stored(forward, heads, k, v, &out_of_range);
    EXPECT_EQ(Stored(backward, heads, k, v, &out_of_range), pages);
    EXPECT_EQ(out_of_range, 0);
    for (int64_t head = 0; head < heads.kv_heads; ++head) {
      for (int64_t position = 0; position < kTiles * kTileTokens; ++position) {
        const int64_t token = position - kPosition, slot = position % kTileTokens;
        const bool stored = token >= 0 && token < kTokens;
        const uint8_t* const keys =
            pages.data() + (position / kTileTokens * heads.kv_heads + head) * heads.head_bytes();
        for (int64_t d = 0; d < kernels::PadToLanes(heads.head_dim); ++d) {
          const bool inside = stored && d < heads.head_dim;
          const float key = inside ? k[(head * kTokens + token) * heads.head_dim + d] : 0;
          const float value = inside ? v[(token * heads.kv_heads + head) * heads.head_dim + d] : 0;
          if (d < kernels::KeyElements(heads.depth(), heads.head_dim) / kTileTokens) {
            ASSERT_EQ(Number(heads.dtype, keys, kernels::KeyAt(heads.depth(), d, slot)),
                      Rounded(heads.dtype, key));
          }
          ASSERT_EQ(Number(heads.dtype, keys + heads.key_bytes(),
                           kernels::ValueAt(heads.depth(), heads.head_dim, slot, d)),
                    Rounded(heads.dtype, value));
        }
      }
    }
  }
}

TEST(StoreKeyRows, TellsOfNumbersBeyondTheRangeOfF16) {
  for (const auto& [x, expected] : {std::pair{65519.0f, 0}, std::pair{65520.0f, 1},
                                    std::pair{kInfinity, 0}, std::pair{kNan, 0}}) {
    const Heads heads = {DType::kF16, 1, 4};
    const std::vector<float> k = RandomNumbers(kTokens * 4, 1);
    std::vector<float> v = k;
    v[37] = -x;
    TestGpu gpu(ThreadOrder::kAscending);
    int32_t out_of_range = 0;
    Stored(gpu, heads, k, v, &out_of_range);
    EXPECT_EQ(out_of_range, expected) << x;
  }
}

TEST(StoreKeyRows, RefusesOtherStorages) {
  TestGpu gpu(ThreadOrder::kAscending);
  try {
    StoreKeyRows(gpu.stream(), {}, {}, 0, {.dtype = DType::kI8}, nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a GPU stores keys in F32, F16 or BF16, found I8");
  }
}

}  // namespace
}  // namespace godwit::cuda::store_keys_test
