#include "kv/read_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/kernel_test_support.h"
#include "kv/kv_cache.h"

namespace godwit::read_keys_test {
namespace {

using kernels::kTileTokens;

constexpr int64_t kTokens = kTileTokens + 7;

// What a cache of that type makes of a key.
std::vector<float> Stored(DType dtype, std::vector<float> key) {
  const auto magnitude = [](float a, float b) { return std::abs(a) < std::abs(b); };
  const float largest = std::abs(*std::ranges::max_element(key, magnitude));
  for (float& x : key) {
    if (dtype == DType::kF16) x = ToFloat(ToF16(x));
    if (dtype == DType::kBF16) x = ToFloat(ToBF16(x));
    if (dtype == DType::kI8 && largest > 0) {
      x = std::nearbyint(x * (127.0f / largest)) * (largest / 127.0f);
    }
  }
  return key;
}

const kernels::KernelTable& Kernels() {
  static const kernels::KernelTable& table = *kernels::SelectIsa("").table;
  return table;
}

class ReadKeysTest : public testing::TestWithParam<KvType> {};

// In rows that are longer than a tile, and nothing beside it.
TEST_P(ReadKeysTest, ComeBackAsTheyWereStored) {
  constexpr int64_t kStride = kTileTokens + 3, kLayer = 1, kHead = 2;
  for (const int64_t dim : {1, 5, 24, 128}) {
    KvCache cache(std::make_shared<KvPool>(
        KvLayout{.layers = 2, .kv_heads = 3, .head_dim = dim, .dtype = GetParam().dtype}));
    cache.Reserve(kTokens);
    kernels::RandomFloats random(static_cast<uint32_t>(dim));
    std::vector<std::vector<float>> written[2];  // keys, values
    for (int64_t p = 0; p < kTokens; ++p) {
      for (int64_t row = 0; row < 2 * 3; ++row) {
        std::vector<float> k(static_cast<size_t>(dim)), v(k.size());
        if (p != 3) random.Fill(k, -2, 1);
        if (p != 5) random.Fill(v, -1, 2);
        cache.Write(Kernels(), row / 3, row % 3, p, k.data(), v.data());
        if (row != kLayer * 3 + kHead) continue;
        written[0].push_back(Stored(GetParam().dtype, k));
        written[1].push_back(Stored(GetParam().dtype, v));
      }
    }
    for (int64_t i = 0; i < 2 * PagesFor(kTokens); ++i) {
      const bool values = i % 2 == 1;
      const int64_t p = i / 2 * kTileTokens;
      std::vector<float> numbers(static_cast<size_t>(dim * kStride), 9);
      (values ? ReadValues : ReadKeys)(cache.View(kLayer), dim, kHead, p / kTileTokens,
                                       numbers.data(), kStride);
      for (int64_t n = 0; n < dim * kStride; ++n) {
        const float found = numbers[static_cast<size_t>(n)];
        const int64_t d = n / kStride, j = n % kStride;
        if (j >= kTileTokens) {
          ASSERT_EQ(found, 9) << "written beside the tile";
        } else if (p + j < kTokens) {
          ASSERT_EQ(found, written[values][static_cast<size_t>(p + j)][static_cast<size_t>(d)])
              << (values ? "value " : "key ") << p + j << ", dimension " << d << " of " << dim;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(KvTypes, ReadKeysTest, testing::ValuesIn(kKvTypes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace godwit::read_keys_test
