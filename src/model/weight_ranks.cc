#include "model/weight_ranks.h"

#include <algorithm>
#include <span>

#include "model/weight_share.h"
#include "ops/copy_rows.h"
#include "ops/sum_parts.h"

namespace godwit {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
// The numbers that are exchanged at once: bounds scratch memory, and frames.
constexpr int64_t kPieceFloats = int64_t{1} << 20;
// The bytes that cost as much as another message: 10 Gbit/s take 50 microseconds for them.
constexpr int64_t kMessageBytes = int64_t{64} << 10;

int64_t ShareOf(int64_t floats, int64_t ranks) { return (floats + ranks - 1) / ranks; }

// Whether each rank sums a share of the numbers.
bool SumsInShares(int64_t floats, int64_t ranks) {
  const int64_t whole = (ranks - 1) * floats, shares = 2 * (ranks - 1) * ShareOf(floats, ranks);
  return (whole - shares) * kFloatBytes > kMessageBytes;
}

int64_t RowsTogether(int64_t cols) {
  return std::max<int64_t>(1, kPieceFloats / std::max<int64_t>(1, cols));
}

MatrixView<float> AsRows(std::span<float> flat, int64_t rows) {
  const int64_t cols = std::ssize(flat) / rows;
  return {flat.data(), rows, cols, cols};
}

std::span<float> Floats(const Exec& exec, int64_t count) {
  return exec.workspace.Matrix<float>(1, count).RowSpan(0);
}

// All numbers of x, one row behind another.
void SumPiece(const Exec& exec, Communicator& ranks, MatrixView<float> x) {
  Workspace::Scope scope(exec.workspace);
  const int64_t floats = x.rows * x.cols, size = ranks.size();
  const bool in_shares = SumsInShares(floats, size);
  const int64_t share = ShareOf(floats, size);
  const auto mine = Floats(exec, in_shares ? size * share : floats);
  const auto all = Floats(exec, size * (in_shares ? share : floats));
  ops::CopyRows(exec, x, AsRows(mine.first(floats), x.rows));
  if (in_shares) {
    std::ranges::fill(mine.subspan(floats), 0.0f);
    ranks.AllToAll(std::as_bytes(mine), std::as_writable_bytes(all), exec.cancel);
    const auto sums = all.first(share);
    ops::SumParts(exec, AsRows(all, size), sums);
    ranks.AllGather(std::as_bytes(sums), std::as_writable_bytes(mine), exec.cancel);
  } else {
    ranks.AllGather(std::as_bytes(mine), std::as_writable_bytes(all), exec.cancel);
    ops::SumParts(exec, AsRows(all, size), mine);
  }
  ops::CopyRows(exec, AsRows(mine.first(floats), x.rows), x);
}

}  // namespace

void SumOverRanks(const Exec& exec, Communicator& ranks, MatrixView<float> x) {
  const ProfilePart measured(exec.profile, StepPart::kRanks);
  const int64_t together = RowsTogether(x.cols);
  for (int64_t row = 0; row < x.rows; row += together) {
    SumPiece(exec, ranks, x.Rows(row, std::min(x.rows, row + together)));
  }
}

void GatherLogits(const Exec& exec, Communicator& ranks, int64_t vocab_size,
                  MatrixView<float> logits) {
  const ProfilePart measured(exec.profile, StepPart::kRanks);
  const auto columns_of = [&](int rank) {
    const IndexRange tokens = TokensOf(vocab_size, rank, ranks.size());
    return logits.Cols(std::min(tokens.begin, logits.cols), std::min(tokens.end, logits.cols));
  };
  int64_t widest = 0;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    widest = std::max(widest, columns_of(rank).cols);
  }
  const int64_t together = RowsTogether(widest);
  for (int64_t row = 0; row < logits.rows; row += together) {
    Workspace::Scope scope(exec.workspace);
    const int64_t end = std::min(logits.rows, row + together), rows = end - row;
    const auto mine = Floats(exec, rows * widest);
    const auto all = Floats(exec, ranks.size() * rows * widest);
    const auto own = columns_of(ranks.rank()).Rows(row, end);
    std::ranges::fill(mine, 0.0f);
    ops::CopyRows(exec, own, AsRows(mine, rows).Cols(0, own.cols));
    ranks.AllGather(std::as_bytes(mine), std::as_writable_bytes(all), exec.cancel);
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const auto to = columns_of(rank).Rows(row, end);
      if (rank == ranks.rank()) continue;
      ops::CopyRows(exec,
                    AsRows(all.subspan(rank * rows * widest, rows * widest), rows).Cols(0, to.cols),
                    to);
    }
  }
}

ExchangeCost CostOfSum(int64_t rows, int64_t cols, int ranks) {
  ExchangeCost cost;
  if (ranks == 1) return cost;
  const int64_t together = RowsTogether(cols);
  for (int64_t row = 0; row < rows; row += together) {
    const int64_t floats = std::min(together, rows - row) * cols;
    const bool in_shares = SumsInShares(floats, ranks);
    cost.bytes += kFloatBytes * (ranks - 1) * (in_shares ? 2 * ShareOf(floats, ranks) : floats);
    cost.messages += in_shares ? 2 : 1;
  }
  return cost;
}

ExchangeCost CostOfLogits(int64_t rows, int64_t vocab_size, int ranks) {
  if (ranks == 1) return {};
  int64_t widest = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    widest = std::max(widest, TokensOf(vocab_size, rank, ranks).count());
  }
  return {.bytes = kFloatBytes * (ranks - 1) * rows * widest,
          .messages = (rows + RowsTogether(widest) - 1) / RowsTogether(widest)};
}

}  // namespace godwit
