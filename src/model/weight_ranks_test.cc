#include "model/weight_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "base/test_support.h"
#include "dist/local.h"
#include "kernels/dispatch.h"
#include "model/weight_share.h"

namespace godwit::weight_ranks_test {
namespace {

// Calls work(exec, communicator) on each rank, with two threads on odd ones.
void OnRanks(int ranks, const std::function<void(const Exec&, Communicator&)>& work) {
  LocalWorld world(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadPool pool(1 + rank % 2);
      Workspace workspace;
      work({.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace},
           *world.Rank(rank));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

float Number(int rank, int64_t row, int64_t col) {
  return static_cast<float>(Uniform(7, rank, (row << 20) + col, 0) - 0.5);
}

TEST(SumOverRanks, IsInTheOrderOfRanksOnAllOfThem) {
  struct Case {
    int ranks;
    int64_t rows, cols;
    int messages;
  };
  // The last two are exchanged in shares, and the last one in two pieces.
  for (const Case& one : {Case{2, 3, 7, 1}, Case{2, 40, 1000, 1}, Case{3, 1, 5, 1},
                          Case{5, 3, 333, 1}, Case{4, 40, 1001, 2}, Case{3, 3, 400'001, 4}}) {
    const int ranks = one.ranks;  // Clang 14 lets no lambda capture a structured binding
    const int64_t rows = one.rows, cols = one.cols;
    std::vector<float> expected;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) {
        float sum = Number(0, row, col);
        for (int rank = 1; rank < ranks; ++rank) sum += Number(rank, row, col);
        expected.push_back(sum);
      }
    }
    const ExchangeCost cost = CostOfSum(rows, cols, ranks);
    EXPECT_EQ(cost.messages, one.messages);
    OnRanks(ranks, [&](const Exec& exec, Communicator& mine) {
      const auto x = exec.workspace.Matrix<float>(rows, cols);
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t col = 0; col < cols; ++col) x.Row(row)[col] = Number(mine.rank(), row, col);
      }
      SumOverRanks(exec, mine, x);
      std::vector<float> found;
      for (int64_t row = 0; row < rows; ++row) {
        const auto values = x.RowSpan(row);
        found.insert(found.end(), values.begin(), values.end());
      }
      EXPECT_EQ(found, expected) << ranks << " ranks, " << rows << " rows of " << cols;
      EXPECT_EQ(mine.sent_bytes(), cost.bytes);
    });
  }
}

TEST(SumOverRanks, ManyNumbersGoAroundOnce) {
  // Each rank sends each number's share to the one that sums it, and a share of sums to each other.
  EXPECT_EQ(CostOfSum(400, 1000, 4).bytes, 2 * 3 * 100'000 * 4);
  EXPECT_EQ(CostOfSum(1, 1000, 4).bytes, 3 * 1000 * 4);
  EXPECT_EQ(CostOfSum(1, 1000, 1).bytes, 0);
}

TEST(GatherLogits, TellsAllWhatEachHas) {
  for (const int64_t vocab : {5, 100, 1000}) {
    for (const int64_t cols : {vocab, vocab / 128 * 64}) {
      OnRanks(3, [&](const Exec& exec, Communicator& mine) {
        const auto logits = exec.workspace.Matrix<float>(4, cols);
        const IndexRange own = TokensOf(vocab, mine.rank(), 3);
        for (int64_t row = 0; row < 4; ++row) {
          for (int64_t token = 0; token < cols; ++token) {
            const bool has = own.begin <= token && token < own.end;
            logits.Row(row)[token] = has ? static_cast<float>(1000 * row + token) : -1.0f;
          }
        }
        GatherLogits(exec, mine, vocab, logits);
        if (cols == vocab) {
          EXPECT_EQ(mine.sent_bytes(), CostOfLogits(4, vocab, 3).bytes);
        }
        for (int64_t row = 0; row < 4; ++row) {
          for (int64_t token = 0; token < cols; ++token) {
            ASSERT_EQ(logits.Row(row)[token], static_cast<float>(1000 * row + token));
          }
        }
      });
    }
  }
}

TEST(SumOverRanks, ARankThatLeavesEndsAll) {
  OnRanks(3, [&](const Exec& exec, Communicator& mine) {
    const auto x = exec.workspace.Matrix<float>(2, 8);
    if (mine.rank() == 1) return mine.Leave("its disk is full");
    EXPECT_EQ(ErrorOf(ErrorKind::kIo, [&] { SumOverRanks(exec, mine, x); }),
              "rank 1 has ended: its disk is full");
  });
}

}  // namespace
}  // namespace godwit::weight_ranks_test
