#include "kv/state_cache.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_support.h"

namespace godwit::state_cache_test {
namespace {

constexpr StateLayout kLayout{.layers = 2, .floats = 3, .row_floats = 2};

// The memory of so many pages, and of the rows of some of them.
constexpr int64_t Bytes(int64_t pages, int64_t with_rows) {
  return pages * kLayout.state_bytes() + with_rows * kLayout.rows_bytes();
}

// Recurrent layers that count. A row is the token that was read. A state is the sum of all tokens
// before the tile. Each layer multiplies tokens by its number from one.
class Texts : public testing::Test {
 protected:
  StateCache NewCache(int64_t budget_bytes = Bytes(1000, 1000)) {
    budget_ = std::make_shared<KvBudget>(budget_bytes);
    return StateCache(std::make_shared<StatePool>(kLayout, budget_));
  }

  // Writes what a layer would for the reserved step, and returns what it remembers before each row.
  std::vector<float> Step(const StateCache& cache, std::span<const int> tokens) {
    std::vector<float> sums(tokens.size());
    for (int64_t layer = 0; layer < kLayout.layers; ++layer) {
      Workspace::Scope scope(workspace_);
      std::vector<ops::StatePiece> pieces(cache.pieces());
      cache.FillPieces(workspace_, layer, /*first_row=*/0, pieces.data());
      for (const ops::StatePiece& piece : pieces) {
        const int64_t before = std::ssize(piece.kept) - piece.rows;
        for (int64_t i = 0; i < piece.rows; ++i) {
          const int64_t row = piece.first_row + i;
          const auto factor = static_cast<float>(layer + 1);
          piece.kept[before + i][1] = factor * static_cast<float>(tokens[row]);
          float sum = piece.begin[2];
          for (int64_t j = 0; j < before + i; ++j) sum += piece.kept[j][1];
          if (layer == 1) {
            EXPECT_EQ(sum, 2 * sums[row]);
          }
          if (layer == 0) sums[row] = sum;
          if (piece.end != nullptr && i + 1 == piece.rows) {
            piece.end[2] = sum + piece.kept[before + i][1];
          }
        }
      }
    }
    return sums;
  }

  // Reads tokens in steps, each of which must remember `sum` and all tokens before it.
  void Read(StateCache& cache, int64_t tokens, int64_t chunk, int token, int64_t sum) {
    while (tokens > 0) {
      const int64_t n = std::min(chunk, tokens);
      cache.Reserve(n);
      for (const float before : Step(cache, std::vector<int>(n, token))) {
        ASSERT_EQ(before, static_cast<float>(sum)) << "at " << cache.length();
        sum += token;
      }
      cache.Append(n);
      tokens -= n;
    }
  }

  std::shared_ptr<KvBudget> budget_;
  Workspace workspace_;
};

TEST_F(Texts, RemembersAllThatWasRead) {
  for (const int64_t chunk : {1, 5, 64, 100, 1000, 40'000}) {
    StateCache cache = NewCache();
    Read(cache, 40'000, chunk, 1, 0);
    EXPECT_EQ(cache.length(), 40'000);
    EXPECT_EQ(cache.bytes(), Bytes(5, 2));
    EXPECT_EQ(cache.bytes(), budget_->used());
    const std::vector<int64_t> kept = {256 * 64, 512 * 64, 608 * 64, 624 * 64, 625 * 64};
    EXPECT_EQ(cache.Positions(), kept);
    for (const int64_t at : cache.Positions()) {
      EXPECT_EQ(cache.StateAt(at, 0)[2], static_cast<float>(at));
      EXPECT_EQ(cache.StateAt(at, 1)[2], static_cast<float>(2 * at));
    }
  }
}

TEST_F(Texts, AStepThatDidNotHappenLeavesNoTrace) {
  StateCache cache = NewCache();
  int64_t length = 0;
  for (const int64_t tokens : {60, 3, 1, 64, 200, 7}) {
    const int64_t bytes = budget_->used();
    cache.Reserve(300);
    Step(cache, std::vector<int>(300, 9));
    cache.Release();
    cache.ReserveTree(std::vector<int32_t>{-1, 0, 1, -1, 3, 2, 5});
    Step(cache, std::vector<int>(7, 5));
    cache.Release();
    EXPECT_LE(budget_->used(), std::max(bytes, Bytes(1, 1)));
    EXPECT_EQ(cache.bytes(), budget_->used());
    Read(cache, tokens, 1000, 1, length);
    length += tokens;
  }
}

TEST_F(Texts, AForkIsATextOfItsOwn) {
  for (int64_t length = 0; length < 200; length += length % 64 == 62 ? 1 : 3) {
    StateCache cache = NewCache();
    Read(cache, length, 50, 1, 0);
    StateCache fork = cache.Fork(), third = fork.Fork();
    EXPECT_EQ(budget_->used(), cache.bytes()) << "they share all pages";
    Read(fork, 100, 7, 2, length);
    Read(cache, 100, 64, 3, length);
    Read(third, 1, 1, 4, length);
    Read(fork, 10, 10, 2, length + 200);
    Read(cache, 10, 10, 3, length + 300);
    const StateCache moved = std::move(fork);
    EXPECT_EQ(moved.length(), length + 110);
  }
  EXPECT_EQ(budget_->used(), 0) << "all pages were given back";
}

TEST_F(Texts, ReturnsToWhereItCan) {
  StateCache all = NewCache();
  Read(all, 5000, 300, 1, 0);  // tile 78
  for (int64_t length = 0; length <= 5000; ++length) {
    const int64_t back = all.RestartPoint(length);
    ASSERT_LE(back, length);
    ASSERT_TRUE(all.CanTruncate(back)) << length;
    ASSERT_EQ(all.CanTruncate(length), back == length) << length;
    if (5000 - length <= 64) {
      ASSERT_EQ(back, length) << "a tile can always be taken back";
    }
    ASSERT_LE(5000 - back, 64 + std::max<int64_t>(16 * (5000 - length), 1024 * 2)) << length;
    if (length % 97 != 0) continue;
    StateCache cache = all.Fork();
    cache.Truncate(back);
    EXPECT_EQ(cache.length(), back);
    Read(cache, 200, 60, 2, back);
  }
  EXPECT_FALSE(all.CanTruncate(5001));
  Read(all, 10, 1, 1, 5000);
}

// A tree over the end of a tile: rows 2 and 4 end it, each with what its own path read.
TEST_F(Texts, EachPathOfATreeRemembersItself) {
  const std::vector<int32_t> parents = {-1, 0, 1, 2, 1, 4, 5, -1};
  const std::vector<int> tokens = {1, 2, 4, 8, 16, 32, 64, 128};
  const std::vector<float> before = {0, 1, 3, 7, 3, 19, 51, 0};
  for (const int64_t length : {int64_t{0}, int64_t{61}, int64_t{62}, int64_t{125}, int64_t{150}}) {
    for (int64_t row = 0; row < 8; ++row) {
      StateCache cache = NewCache();
      Read(cache, length, 50, 1, 0);
      const StateCache other = cache.Fork();
      cache.ReserveTree(parents);
      std::vector<float> expected = before;
      for (float& sum : expected) sum += static_cast<float>(length);
      EXPECT_EQ(Step(cache, tokens), expected);
      cache.Accept(row);
      const auto sum = static_cast<int64_t>(expected[row]) + tokens[row];
      ASSERT_EQ(cache.RestartPoint(cache.length() - 1), cache.length() - 1);
      Read(cache, 150, 40, 3, sum);
      EXPECT_EQ(other.length(), length);
    }
  }
}

// A text whose end is shared copies the rows that it has there, and the other keeps its own.
TEST_F(Texts, AForkCopiesRowsAlone) {
  StateCache cache = NewCache();
  Read(cache, 200, 50, 1, 0);  // tiles 2 and 3
  EXPECT_EQ(budget_->used(), Bytes(2, 2));
  StateCache fork = cache.Fork();
  Read(fork, 10, 10, 2, 200);
  EXPECT_EQ(budget_->used(), Bytes(2, 3));
  Read(cache, 10, 3, 1, 200);
}

TEST_F(Texts, AnEarlierTileIsReadAgainFromItsBeginning) {
  StateCache cache = NewCache();
  Read(cache, 3206, 64, 1, 0);  // tile 50 follows 49, 48 and 32
  EXPECT_EQ(cache.bytes(), Bytes(4, 2));
  EXPECT_EQ(cache.RestartPoint(3140), 3140);
  EXPECT_EQ(cache.RestartPoint(3135), 3072);
  EXPECT_EQ(cache.RestartPoint(2100), 2048);
  EXPECT_FALSE(cache.CanTruncate(2100));
  cache.Truncate(2048);
  EXPECT_EQ(cache.bytes(), Bytes(1, 0));
  Read(cache, 70, 9, 2, 2048);
  EXPECT_EQ(cache.RestartPoint(2050), 2050);
}

TEST_F(Texts, KeptPagesMakeWayForTheText) {
  StateCache cache = NewCache(Bytes(5, 3));
  Read(cache, 3206, 64, 1, 0);
  EXPECT_EQ(cache.bytes(), Bytes(4, 2));
  const std::vector<int32_t> tree(100, -1);  // rows of two pages
  EXPECT_EQ(ErrorOf([&] { cache.ReserveTree(tree); }).kind(), ErrorKind::kMemory);
  EXPECT_EQ(cache.bytes(), Bytes(4, 2));
  EXPECT_TRUE(cache.ReleaseKept());
  EXPECT_FALSE(cache.ReleaseKept());
  EXPECT_EQ(cache.bytes(), Bytes(1, 1));
  EXPECT_EQ(cache.RestartPoint(2100), 0);
  EXPECT_EQ(cache.RestartPoint(3205), 3205);
  cache.ReserveTree(tree);
  cache.Release();
  Read(cache, 100, 64, 1, 3206);
}

TEST_F(Texts, GoesOnFromASavedState) {
  StateCache cache = NewCache();
  std::vector<float> state = {0, 0, 640, 0, 0, 1280};
  cache.Restore(640, std::as_bytes(std::span(state)));
  EXPECT_EQ(cache.length(), 640);
  EXPECT_EQ(cache.RestartPoint(639), 0);
  Read(cache, 200, 30, 1, 640);
  EXPECT_EQ(cache.RestartPoint(800), 800);
}

TEST(StateCache, AModelWithoutRecurrentLayersTakesNothing) {
  StateCache cache(nullptr);
  cache.Reserve(100);
  EXPECT_EQ(cache.pieces(), 0);
  cache.Append(100);
  cache.Truncate(3);
  EXPECT_EQ(cache.bytes(), 0);
  EXPECT_EQ(cache.RestartPoint(7), 7);
  EXPECT_FALSE(cache.Fork().any());
}

TEST(StateLayout, PagesThatAreKeptWereKeptBefore) {
  for (int64_t last = 1; last < 1200; ++last) {
    int64_t count = 0;
    for (int64_t tile = 0; tile <= last; ++tile) {
      if (!StateLayout::IsKept(tile, last)) continue;
      ++count;
      if (tile < last) {
        EXPECT_TRUE(StateLayout::IsKept(tile, last - 1)) << tile << " at " << last;
      }
    }
    EXPECT_LE(count, StateLayout::kMostPages);
    EXPECT_LE(Bytes(count, 2), kLayout.BytesFor(last * 64));
  }
}

}  // namespace
}  // namespace godwit::state_cache_test
