#include "ops/select_keys.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "ops/kv_pages_test_support.h"
#include "ops/read_keys.h"
#include "ops/store_row.h"
#include "ops/test_support.h"

namespace godwit::ops::select_keys_test {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kLayer = 1;
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kI8};

KvLayout LayoutOf(DType dtype, int64_t dim) {
  return {.layers = 2,
          .kv_heads = 1,
          .head_dim = 20,
          .dtype = dtype,
          .values_in_keys = true,
          .index_dim = dim};
}

// A text with random index keys, and queries of its last rows.
struct Text {
  Text(const kernels::KernelTable& kernels, const KeyIndexShape& shape_of, DType dtype,
       int64_t tokens_of, int64_t rows_of)
      : shape(shape_of),
        layout(LayoutOf(dtype, shape.head_dim)),
        pages(layout, tokens_of),
        tokens(tokens_of),
        rows(rows_of),
        q(rows * shape.heads, shape.head_dim, 2),
        weights(rows, shape.heads, 3) {
    RandomFloats random(1);
    std::vector<float> key(shape.head_dim);
    for (int64_t p = 0; p < tokens; ++p) {
      random.Fill(key);
      Store(kernels, p, key);
    }
  }

  void Store(const kernels::KernelTable& kernels, int64_t position,
             const std::vector<float>& key) const {
    StoreRow(kernels, layout.Index(), pages.IndexView(kLayer), kLayer, 0, position, key.data(),
             nullptr);
  }

  int64_t PositionOf(int64_t row) const { return tokens - rows + row; }

  // The score of each key that a row may see.
  std::vector<double> Scores(int64_t row) const {
    std::vector<double> scores(PositionOf(row) + 1);
    std::vector<float> keys(shape.head_dim * kTileTokens);
    for (int64_t p = 0; p < std::ssize(scores); ++p) {
      if (p % kTileTokens == 0) {
        ReadKeys(pages.IndexView(kLayer), shape.head_dim, 0, p / kTileTokens, keys.data(),
                 kTileTokens);
      }
      for (int64_t head = 0; head < shape.heads; ++head) {
        double product = 0;
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          const float x = q.At(row * shape.heads + head, d);
          product += double{layout.dtype == DType::kBF16 ? ToFloat(ToBF16(x)) : x} *
                     keys[d * kTileTokens + p % kTileTokens];
        }
        scores[p] += double{shape.weight_scale} * weights.At(row, head) *
                     std::max(0.0, double{shape.scale} * product);
      }
    }
    return scores;
  }

  KeyIndexShape shape;
  KvLayout layout;
  TestPages pages;
  int64_t tokens, rows;
  GappedMatrix q, weights;
};

class SelectKeysTest : public OpsTest {
 protected:
  // The chosen positions of rows [begin, end).
  std::vector<std::vector<int64_t>> Select(ThreadPool& pool, const Text& text, int64_t begin,
                                           int64_t end) {
    Workspace::Scope scope(workspace_);
    const int64_t heads = text.shape.heads;
    const auto parts = workspace_.Matrix<TilePart>(
        end - begin, MostChosenTiles(text.shape, text.PositionOf(end - 1) + 1));
    std::vector<std::span<const TilePart>> chosen(end - begin);
    SelectKeys(On(pool), text.shape,
               {.keys = text.pages.IndexView(kLayer),
                .q = text.q.view().Rows(begin * heads, end * heads),
                .weights = text.weights.view().Rows(begin, end),
                .position = text.PositionOf(begin)},
               parts, chosen);
    std::vector<std::vector<int64_t>> all;
    for (const auto& row : chosen) {
      std::vector<int64_t>& positions = all.emplace_back();
      int64_t last = -1;
      for (const TilePart& part : row) {
        EXPECT_GT(part.tile, last);
        last = part.tile;
        for (int at = part.begin; at < part.end; ++at) {
          if ((part.hidden >> at & 1) == 0) positions.push_back(part.tile * kTileTokens + at);
        }
      }
    }
    return all;
  }
};

// No key that is left out has a higher score than one that is chosen.
TEST_P(SelectKeysTest, ChoosesTheKeysOfTheHighestScores) {
  for (const DType dtype : kTypes) {
    for (const auto& [heads, dim, best] :
         {std::tuple<int64_t, int64_t, int64_t>{8, 32, 7}, {3, 13, 64}, {5, 20, 200}}) {
      const KeyIndexShape shape{
          .heads = heads, .head_dim = dim, .best = best, .scale = 0.3f, .weight_scale = 0.7f};
      const Text text(table(), shape, dtype, 1300, 10);
      const auto chosen = Select(three_, text, 0, text.rows);
      for (int64_t row = 0; row < text.rows; ++row) {
        ASSERT_EQ(std::ssize(chosen[row]), best);
        const std::vector<double> scores = text.Scores(row);
        std::vector<bool> is_chosen(scores.size());
        double worst = INFINITY, left_out = -INFINITY;
        for (const int64_t p : chosen[row]) {
          ASSERT_LE(p, text.PositionOf(row));
          is_chosen[p] = true;
          worst = std::min(worst, scores[p]);
        }
        for (size_t p = 0; p < scores.size(); ++p) {
          if (!is_chosen[p]) left_out = std::max(left_out, scores[p]);
        }
        EXPECT_LE(left_out, worst + (dtype == DType::kI8 ? 2e-3 : 1e-5)) << Name(dtype);
      }
    }
  }
}

TEST_P(SelectKeysTest, ARowDependsNeitherOnThreadsNorOnOthers) {
  const KeyIndexShape shape{.heads = 4, .head_dim = 24, .best = 50};
  for (const DType dtype : kTypes) {
    const Text text(table(), shape, dtype, 3000, 140);
    const auto all = Select(three_, text, 0, text.rows);
    EXPECT_EQ(Select(one_, text, 0, text.rows), all);
    for (const int64_t row : {0, 1, 63, 127, 128, 139}) {
      EXPECT_THAT(Select(three_, text, row, row + 1), ElementsAre(all[row]));
      EXPECT_THAT(Select(one_, text, row, row + 1), ElementsAre(all[row]));
    }
  }
}

// Every score is 0 without weights.
TEST_P(SelectKeysTest, AmongEqualsTheEarlierOnesAreChosen) {
  const KeyIndexShape shape{.heads = 2, .head_dim = 8, .best = 70};
  Text text(table(), shape, DType::kF32, 2500, 3);
  for (int64_t row = 0; row < text.rows; ++row) {
    std::ranges::fill(text.weights.view().RowSpan(row), 0.0f);
  }
  std::vector<int64_t> first(70);
  std::iota(first.begin(), first.end(), 0);
  EXPECT_THAT(Select(three_, text, 0, text.rows), ElementsAre(first, first, first));
}

TEST_P(SelectKeysTest, AScoreThatIsNoNumberIsNotHidden) {
  const KeyIndexShape shape{.heads = 2, .head_dim = 8, .best = 3};
  const Text text(table(), shape, DType::kF32, 200, 1);
  text.Store(table(), 77, std::vector<float>(8, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_THAT(Select(one_, text, 0, 1)[0], testing::Contains(77));
}

// All of a tile, and the first position that chooses.
TEST_P(SelectKeysTest, LeavesOutOneKey) {
  const KeyIndexShape shape{.heads = 2, .head_dim = 8, .best = 128};
  const Text text(table(), shape, DType::kF32, 129, 1);
  const std::vector<double> scores = text.Scores(0);
  const int64_t least = std::ranges::min_element(scores) - scores.begin();
  const auto chosen = Select(one_, text, 0, 1)[0];
  EXPECT_EQ(std::ssize(chosen), 128);
  EXPECT_THAT(chosen, testing::Not(testing::Contains(least)));
}

GODWIT_FOR_EVERY_ISA(SelectKeysTest);

}  // namespace
}  // namespace godwit::ops::select_keys_test
