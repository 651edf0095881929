#include "ops/select_keys.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "ops/key_product.h"

namespace godwit::ops {
namespace {

constexpr int64_t kIndexRows = 4;    // that go through a tile together
constexpr int64_t kBatchRows = 128;  // whose candidates are kept at a time
constexpr int64_t kSplitTiles = 16;  // the fewest that are worth lists of their own

struct Candidate {
  float score;
  int64_t position;
};

// The order of the choice: total, as positions differ.
bool ComesFirst(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.position < b.position);
}

// The best candidates of a row among some of its tiles, in memory for twice as many.
class BestKeys {
 public:
  BestKeys() = default;
  BestKeys(std::span<Candidate> memory, int64_t best) : memory_(memory), best_(best) {}

  // Positions ascend from call to call.
  void Add(float score, int64_t position) {
    if (std::isnan(score)) score = std::numeric_limits<float>::infinity();
    if (full_ && score <= worst_) return;
    memory_[count_++] = {score, position};
    if (count_ == std::ssize(memory_)) Trim();
  }

  // Moves the best to the front of the memory, and returns their number.
  int64_t Finish() {
    if (count_ > best_) Trim();
    return count_;
  }

 private:
  void Trim() {
    const auto last = memory_.begin() + (best_ - 1);
    std::nth_element(memory_.begin(), last, memory_.begin() + count_, ComesFirst);
    worst_ = last->score;
    full_ = true;
    count_ = best_;
  }

  std::span<Candidate> memory_;
  int64_t best_ = 0;
  int64_t count_ = 0;
  bool full_ = false;
  float worst_ = 0;  // the score of the last of the best, once there are so many
};

// Turns chosen positions, ascending, into tiles, and returns their number.
int64_t TilesOf(std::span<const Candidate> chosen, TilePart* parts) {
  int64_t count = 0;
  for (const Candidate& one : chosen) {
    const int64_t tile = one.position / kTileTokens;
    const auto at = static_cast<int32_t>(one.position % kTileTokens);
    if (count == 0 || parts[count - 1].tile != tile) {
      parts[count++] = {.tile = tile, .begin = at, .end = at, .hidden = ~uint64_t{0}};
    }
    parts[count - 1].end = at + 1;
    parts[count - 1].hidden &= ~(uint64_t{1} << at);
  }
  // Positions outside of a part are hidden anyway.
  for (int64_t i = 0; i < count; ++i) {
    TilePart& part = parts[i];
    const int width = part.end - part.begin;
    const uint64_t inside = width == kTileTokens ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    part.hidden &= inside << part.begin;
  }
  return count;
}

// A batch of neighbouring rows.
class Selector {
 public:
  // first: of the batch, among the rows of the queries.
  Selector(const Exec& exec, const KeyIndexShape& shape, const IndexQueries& queries, int64_t first,
           int64_t rows)
      : exec_(exec),
        shape_(shape),
        queries_(queries),
        first_(first),
        rows_(rows),
        blocks_((rows + kIndexRows - 1) / kIndexRows),
        product_(exec, queries.keys,
                 queries.q.Rows(first * shape.heads, (first + rows) * shape.heads)) {
    const int64_t tiles = PagesFor(PositionOf(rows - 1) + 1);
    const int64_t wanted = (2 * exec.pool.threads() + blocks_ - 1) / blocks_;
    splits_ = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, tiles / kSplitTiles));
    split_tiles_ = (tiles + splits_ - 1) / splits_;
    lists_ = exec.workspace.Matrix<Candidate>(rows, splits_ * 2 * shape.best);
    counts_ = exec.workspace.Matrix<int64_t>(rows, splits_);
    const int64_t scratch =
        KeyProduct::ScratchFloats(queries.keys, shape.head_dim, kIndexRows * shape.heads);
    memory_ = exec.workspace.Matrix<float>(exec.pool.threads(), ScoreFloats() + scratch);
  }

  void Select(MatrixView<TilePart> parts, std::span<std::span<const TilePart>> chosen) const {
    exec_.Parallel(blocks_ * splits_, [&](int64_t task, int worker) {
      Gather(task / splits_, task % splits_, memory_.Row(worker));
    });
    exec_.Parallel(rows_, [&](int64_t row) {
      TilePart* const to = parts.Row(first_ + row);
      chosen[first_ + row] = {to, static_cast<size_t>(TilesOf(Choose(row), to))};
    });
  }

 private:
  int64_t PositionOf(int64_t row) const { return queries_.position + first_ + row; }
  int64_t ScoreFloats() const { return kIndexRows * shape_.heads * kTileTokens; }
  std::span<Candidate> List(int64_t row, int64_t split) const {
    return lists_.RowSpan(row).subspan(split * 2 * shape_.best, 2 * shape_.best);
  }

  // Finds the candidates of a block of rows in one of the ranges into which its tiles are split.
  void Gather(int64_t block, int64_t split, float* memory) const {
    const int64_t begin = block * kIndexRows, count = std::min(rows_ - begin, kIndexRows);
    const int64_t end_tile =
        std::min((split + 1) * split_tiles_, PagesFor(PositionOf(begin + count - 1) + 1));
    std::array<BestKeys, kIndexRows> best;
    for (int64_t i = 0; i < count; ++i) {
      best[i] = BestKeys(List(begin + i, split), shape_.best);
    }
    for (int64_t tile = split * split_tiles_; tile < end_tile; ++tile) {
      product_.Score(begin * shape_.heads, count * shape_.heads, /*head=*/0, tile,
                     memory + ScoreFloats(), memory, kTileTokens);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t first = tile * kTileTokens;
        const int64_t seen = std::min(kTileTokens, PositionOf(begin + i) + 1 - first);
        std::array<float, kTileTokens> sums = {};
        AddHeads(begin + i, memory + i * shape_.heads * kTileTokens, sums);
        for (int64_t j = 0; j < seen; ++j) best[i].Add(sums[j], first + j);
      }
    }
    for (int64_t i = 0; i < count; ++i) counts_.Row(begin + i)[split] = best[i].Finish();
  }

  // Adds up the scores of a row's heads, [heads, kTileTokens].
  void AddHeads(int64_t row, const float* scores, std::span<float> sums) const {
    for (int64_t head = 0; head < shape_.heads; ++head) {
      const float weight = shape_.weight_scale * queries_.weights.Row(first_ + row)[head];
      const float* const of_head = scores + head * kTileTokens;
      for (int64_t j = 0; j < kTileTokens; ++j) {
        const float score = shape_.scale * of_head[j];
        sums[j] += weight * (score < 0 ? 0 : score);
      }
    }
  }

  // The best of the row's candidates, by position. They come to lie at the front of its lists.
  std::span<const Candidate> Choose(int64_t row) const {
    const std::span<Candidate> all = lists_.RowSpan(row);
    int64_t count = counts_.Row(row)[0];
    for (int64_t split = 1; split < splits_; ++split) {
      const int64_t more = counts_.Row(row)[split];
      std::copy_n(List(row, split).begin(), more, all.begin() + count);
      count += more;
    }
    const auto chosen = all.first(std::min(count, shape_.best));
    std::nth_element(all.begin(), chosen.end(), all.begin() + count, ComesFirst);
    std::ranges::sort(chosen, {}, &Candidate::position);
    return chosen;
  }

  const Exec& exec_;
  const KeyIndexShape& shape_;
  const IndexQueries& queries_;
  int64_t first_;
  int64_t rows_;
  int64_t blocks_;  // of kIndexRows rows
  KeyProduct product_;
  int64_t splits_;
  int64_t split_tiles_;
  MatrixView<Candidate> lists_;  // [rows, splits * 2 * best]
  MatrixView<int64_t> counts_;   // [rows, splits]
  MatrixView<float> memory_;     // of each core
};

}  // namespace

int64_t MostChosenTiles(const KeyIndexShape& shape, int64_t end) {
  return std::min(shape.best, PagesFor(end));
}

void SelectKeys(const Exec& exec, const KeyIndexShape& shape, const IndexQueries& queries,
                MatrixView<TilePart> parts, std::span<std::span<const TilePart>> chosen) {
  assert(queries.position >= shape.best && queries.q.cols == shape.head_dim);
  assert(std::ssize(chosen) == queries.rows() && parts.rows == queries.rows());
  for (int64_t first = 0; first < queries.rows(); first += kBatchRows) {
    Workspace::Scope scope(exec.workspace);
    const int64_t rows = std::min(kBatchRows, queries.rows() - first);
    Selector(exec, shape, queries, first, rows).Select(parts, chosen);
  }
}

}  // namespace godwit::ops
