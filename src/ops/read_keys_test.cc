#include "ops/read_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernel_test_support.h"
#include "ops/kv_pages_test_support.h"
#include "ops/quantize.h"
#include "ops/store_row.h"

namespace godwit::ops::read_keys_test {
namespace {

using kernels::kTileTokens;

constexpr int64_t kTokens = kTileTokens + 7;

const kernels::KernelTable& Kernels() {
  static const kernels::KernelTable& table = *kernels::SelectIsa("").table;
  return table;
}

// A row as a cache of this type stores it. narrow: as 4-bit codes.
std::vector<float> Stored(DType dtype, bool narrow, std::vector<float> key) {
  if (narrow) {
    std::vector<uint8_t> codes(key.size());
    const float scale = QuantizeToNibbles(Kernels(), key.data(), std::ssize(key), codes.data());
    for (size_t i = 0; i < key.size(); ++i) key[i] = scale * kernels::kNibbleLevels[codes[i]];
    return key;
  }
  const auto magnitude = [](float a, float b) { return std::abs(a) < std::abs(b); };
  const float largest = std::abs(*std::ranges::max_element(key, magnitude));
  for (float& x : key) {
    if (dtype == DType::kF16) x = ToFloat(ToF16(x));
    if (dtype == DType::kBF16) x = ToFloat(ToBF16(x));
    if (HasIntegers(dtype) && largest > 0) {
      x = std::nearbyint(x * (127.0f / largest)) * (largest / 127.0f);
    }
  }
  return key;
}

// A row less a centre, turned by a Hadamard matrix and quantized.
std::vector<float> StoredTurned(DType dtype, bool narrow, std::vector<float> key, float centre) {
  const auto dim = std::ssize(key);
  for (float& x : key) x -= centre;
  Kernels().hadamard(dim, key.data());
  key = Stored(dtype, narrow, std::move(key));
  Kernels().hadamard(dim, key.data());
  for (float& x : key) x += centre;
  return key;
}

std::vector<float> StoredKey(DType dtype, const std::vector<float>& key, float centre) {
  if (!HasIntegers(dtype)) return Stored(dtype, false, key);
  return StoredTurned(dtype, kernels::HasNarrowKeys(dtype), key, centre);
}
std::vector<float> StoredValue(DType dtype, const std::vector<float>& value) {
  if (!kernels::HasNarrowValues(dtype)) return Stored(dtype, false, value);
  return StoredTurned(dtype, true, value, 0);
}

class ReadKeysTest : public testing::TestWithParam<KvType> {};

// Rows are longer than a tile, and nothing is written beside the tile.
TEST_P(ReadKeysTest, ComeBackAsTheyWereStored) {
  constexpr int64_t kStride = kTileTokens + 3, kLayer = 1, kHead = 2;
  const DType dtype = GetParam().dtype;
  // Keys of the two longer head sizes are stored less a centre in bf16.
  const auto centre_of = [&](int64_t dim, int64_t tile) -> float {
    return HasIntegers(dtype) && dim > 8 ? static_cast<float>(40 + tile) : 0;
  };
  for (const int64_t dim : {1, 5, 24, 128}) {
    const KvLayout layout{.layers = 2,
                          .kv_heads = 3,
                          .head_dim = dim,
                          .dtype = dtype,
                          .centred = centre_of(dim, 0) != 0};
    const TestPages pages(layout, kTokens);
    for (int64_t i = 0; layout.centred && i < 2 * 3 * PagesFor(kTokens); ++i) {
      const int64_t tile = i / (2 * 3);
      const std::vector<float> centre(dim, centre_of(dim, tile));
      StoreCentre(Kernels(), layout, pages.View(i / 3 % 2), i % 3, tile, centre);
    }
    kernels::RandomFloats random(static_cast<uint32_t>(dim));
    std::vector<std::vector<float>> written[2];  // keys, values
    for (int64_t p = 0; p < kTokens; ++p) {
      for (int64_t row = 0; row < 2 * 3; ++row) {
        std::vector<float> k(dim), v(k.size());
        if (p != 3) random.Fill(k, -2, 1);
        for (float& x : k) x += centre_of(dim, p / kTileTokens);
        if (p != 5) random.Fill(v, -1, 2);
        StoreRow(Kernels(), layout, pages.View(row / 3), row / 3, row % 3, p, k.data(), v.data());
        if (row != kLayer * 3 + kHead) continue;
        written[0].push_back(StoredKey(dtype, k, centre_of(dim, p / kTileTokens)));
        written[1].push_back(StoredValue(dtype, v));
      }
    }
    for (int64_t i = 0; i < 2 * PagesFor(kTokens); ++i) {
      const bool values = i % 2 == 1;
      const int64_t p = i / 2 * kTileTokens;
      std::vector<float> numbers(dim * kStride, 9);
      (values ? ReadValues : ReadKeys)(pages.View(kLayer), dim, kHead, p / kTileTokens,
                                       numbers.data(), kStride);
      for (int64_t n = 0; n < dim * kStride; ++n) {
        const float found = numbers[n];
        const int64_t d = n / kStride, j = n % kStride;
        if (j >= kTileTokens) {
          ASSERT_EQ(found, 9) << "written beside the tile";
        } else if (p + j < kTokens) {
          ASSERT_EQ(found, written[values][p + j][d])
              << (values ? "value " : "key ") << p + j << ", dimension " << d << " of " << dim;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(KvTypes, ReadKeysTest, testing::ValuesIn(kKvTypes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace godwit::ops::read_keys_test
