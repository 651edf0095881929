#include "ops/store_keys.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "base/test_support.h"
#include "ops/kv_pages_test_support.h"
#include "ops/store_row.h"
#include "ops/test_support.h"

namespace godwit::ops::store_keys_test {
namespace {

constexpr int64_t kLayers = 2, kLayer = 1, kHeads = 3, kDim = 24, kPairs = 8;

KvLayout LayoutOf(DType dtype, bool centred = false) {
  return {
      .layers = kLayers, .kv_heads = kHeads, .head_dim = kDim, .dtype = dtype, .centred = centred};
}

// A text whose rows are stored from `position` on, with its rotations.
struct Text {
  Text(const KvLayout& layout, int64_t position_of, int64_t rows_of, uint32_t seed)
      : pages(layout, position_of + rows_of),
        position(position_of),
        rows(rows_of),
        cos(rows, kPairs, seed),
        sin(rows, kPairs, seed + 1),
        tile_cos(TilesOf(), kPairs, seed + 2),
        tile_sin(TilesOf(), kPairs, seed + 3) {}

  int64_t TilesOf() const {
    return (position + rows - 1) / kTileTokens - position / kTileTokens + 1;
  }
  // `count` rows of the text from its row `first` on, which are rows `before`, and those from
  // first_row on.
  StoredRows Rows(int64_t first, int64_t count, int64_t first_row,
                  std::span<const int64_t> before = {}) const {
    const auto of_rows = [&](const GappedMatrix& turns) {
      return turns.view().Rows(first, first + count);
    };
    const int64_t tile = (position + first) / kTileTokens - position / kTileTokens;
    const auto of_tiles = [&](const GappedMatrix& turns) {
      return turns.view().Rows(tile, TilesOf());
    };
    return {.to = pages.View(kLayer),
            .position = position + first,
            .before = before,
            .first_row = first_row,
            .rows = count - std::ssize(before),
            .positions = {.cos = of_rows(cos), .sin = of_rows(sin)},
            .tiles = {.cos = of_tiles(tile_cos), .sin = of_tiles(tile_sin)}};
  }

  TestPages pages;
  int64_t position, rows;
  GappedMatrix cos, sin, tile_cos, tile_sin;
};

class StoreKeysTest : public OpsTest {
 protected:
  // Stores one row of k and v as the definition has it.
  void StoreOne(const KvLayout& layout, const Text& text, int64_t i, const GappedMatrix& k,
                const GappedMatrix& v, int64_t row, const TestPages& to) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const float* const own = k.view().Row(row) + head * kDim;
      std::vector<float> key(own, own + kDim);
      table().rotate_half(text.cos.view().Row(i), text.sin.view().Row(i), kPairs, key.data());
      StoreRow(table(), layout, to.View(kLayer), kLayer, head, text.position + i, key.data(),
               layout.values_in_keys ? nullptr : v.view().Row(row) + head * kDim);
    }
  }
};

// A chain, a path whose first rows are another run's, and a text of few rows, beside each other.
TEST_P(StoreKeysTest, StoresTheRowsOfSeveralTexts) {
  for (const KvType& type : kKvTypes) {
    for (const bool in_keys : {false, true}) {
      KvLayout layout = LayoutOf(type.dtype);
      layout.values_in_keys = in_keys;
      const Text a(layout, 60, 75, 10), b(layout, 127, 5, 20), c(layout, 0, 1, 30);
      const GappedMatrix k(79, kHeads * kDim, 1, -3, 3), v(79, kHeads * kDim, 2);
      const int64_t before[] = {70, 3};
      const StoredRows rows[] = {a.Rows(0, 75, 0), b.Rows(0, 5, 75, before), c.Rows(0, 1, 78)};
      StoreKeys(On(three_), layout, kLayer, rows,
                {.k = k.view(), .v = in_keys ? MatrixView<const float>{} : v.view()});
      const TestPages own_a(layout, 135), own_b(layout, 132), own_c(layout, 1);
      for (int64_t i = 0; i < 75; ++i) StoreOne(layout, a, i, k, v, i, own_a);
      const int64_t rows_of_b[] = {70, 3, 75, 76, 77};
      for (int64_t i = 0; i < 5; ++i) StoreOne(layout, b, i, k, v, rows_of_b[i], own_b);
      StoreOne(layout, c, 0, k, v, 78, own_c);
      EXPECT_TRUE(std::ranges::equal(a.pages.bytes(), own_a.bytes())) << type.name;
      EXPECT_TRUE(std::ranges::equal(b.pages.bytes(), own_b.bytes())) << type.name;
      EXPECT_TRUE(std::ranges::equal(c.pages.bytes(), own_c.bytes())) << type.name;
    }
  }
}

// Centres are functions of their tiles. Rows one by one, which no other core helps with, store the
// same bytes as all rows at once.
TEST_P(StoreKeysTest, RowsDoNotDependOnTheirCompany) {
  for (const DType dtype : {DType::kBF16, DType::kI8, DType::kI4}) {
    for (const bool with_means : {false, true}) {
      const KvLayout layout = LayoutOf(dtype, /*centred=*/dtype != DType::kBF16);
      const GappedMatrix k(140, kHeads * kDim, 3, 2, 5), v(140, kHeads * kDim, 4);
      const GappedMatrix mean(1, kHeads * kDim, 5, 2, 5);
      const auto means = with_means ? mean.view().RowSpan(0) : std::span<const float>();
      const Text together(layout, 50, 140, 40), alone(layout, 50, 140, 40);
      const StoredRows all = together.Rows(0, 140, 0);
      StoreKeys(On(three_), layout, kLayer, {&all, 1},
                {.k = k.view(), .v = v.view(), .means = means});
      for (int64_t i = 0; i < 140; ++i) {
        const StoredRows one = alone.Rows(i, 1, 0);
        StoreKeys(On(one_), layout, kLayer, {&one, 1},
                  {.k = k.view().Rows(i, i + 1), .v = v.view().Rows(i, i + 1), .means = means});
      }
      EXPECT_TRUE(std::ranges::equal(together.pages.bytes(), alone.pages.bytes()))
          << KvTypeName(dtype);
      if (layout.centred) {
        const BF16* const centre = together.pages.View(kLayer).Centre(1, 1);
        std::vector<float> expected(mean.view().Row(0) + kDim, mean.view().Row(0) + 2 * kDim);
        table().rotate_half(together.tile_cos.view().Row(1), together.tile_sin.view().Row(1),
                            kPairs, expected.data());
        for (int64_t d = 0; d < kDim; ++d) {
          EXPECT_EQ(ToFloat(centre[d]), with_means ? ToFloat(ToBF16(expected[d])) : 0);
        }
      }
    }
  }
}

TEST_P(StoreKeysTest, NumberBeyondF16IsRefused) {
  const KvLayout layout = LayoutOf(DType::kF16);
  const Text text(layout, 0, 2, 50);
  GappedMatrix k(2, kHeads * kDim, 6), v(2, kHeads * kDim, 7);
  v.view().Row(1)[5] = 1e9f;
  const StoredRows rows = text.Rows(0, 2, 0);
  const auto store = [&] {
    StoreKeys(On(one_), layout, 7, {&rows, 1}, {.k = k.view(), .v = v.view()});
  };
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, store), testing::HasSubstr("a value of layer 7"));
}

GODWIT_FOR_EVERY_ISA(StoreKeysTest);

}  // namespace
}  // namespace godwit::ops::store_keys_test
