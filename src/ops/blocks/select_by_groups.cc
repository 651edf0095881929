#include "ops/blocks/select_by_groups.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "ops/blocks/score_blocks.h"

namespace godwit::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Groups that a core opens at a time.
constexpr int64_t kTaskGroups = 8;

float TotalOf(const kernels::KernelTable& kernels, std::span<const float> scores) {
  const kernels::PowerSum all = kernels.sum_powers(scores.data(), std::ssize(scores));
  return all.maximum + std::log2(all.sum);
}

// Heads that choose together.
struct Chooser {
  MatrixView<const float> coarse;  // [heads, groups]
  MatrixView<const float> fine;    // [heads, parts]: behind the last group, then as in `order`
  std::span<float> totals;         // [heads], over all groups
  std::span<float> group_worth;
  std::span<float> block_worth;  // [blocks], in the order of `fine`
  std::span<int32_t> order;      // groups, by falling worth
  std::span<int32_t> best;       // blocks, by their place in block_worth
  int64_t open;                  // number of open groups
  int64_t scored = 0;
  bool sure = false;
};

class Search {
 public:
  Search(const kernels::KernelTable& kernels, const IndexView& index, const IndexView& groups,
         const BlockChoice& choice)
      : kernels_(kernels),
        choice_(choice),
        parts_(ScoredParts(index.shape)),
        group_blocks_(groups.shape.tokens / index.shape.tokens),
        groups_(choice.last / group_blocks_),
        bounds_(groups.shape.type == RepresentativeType::kQuest) {}

  bool bounds() const { return bounds_; }
  int64_t groups() const { return groups_; }
  int64_t rest() const { return choice_.last - groups_ * group_blocks_; }
  int64_t BlocksOf(int64_t open) const { return rest() + open * group_blocks_; }
  int64_t PartsOf(int64_t open) const { return BlocksOf(open) * parts_; }
  int64_t group_parts() const { return group_blocks_ * parts_; }

  // Rounding lowers a bound by less than kRounding times the largest score. The total compensates
  // it.
  void OrderGroups(Chooser& chooser) const {
    constexpr float kRounding = 0x1p-18f;
    std::ranges::fill(chooser.group_worth, -kInfinity);
    for (int64_t head = 0; head < chooser.coarse.rows; ++head) {
      const auto scores = chooser.coarse.RowSpan(head).first(chooser.group_worth.size());
      float& total = chooser.totals[head];
      total = TotalOf(kernels_, scores);
      float largest = 0;
      for (const float score : scores) largest = std::max(largest, std::abs(score));
      AddShares(scores, total - (bounds_ ? largest * kRounding : 0), 1, chooser.group_worth);
    }
    std::iota(chooser.order.begin(), chooser.order.end(), 0);
    const auto sorted = chooser.order.begin() + (bounds_ ? groups_ : chooser.open);
    std::ranges::partial_sort(chooser.order, sorted, [&](int32_t a, int32_t b) {
      const float of_a = chooser.group_worth[a];
      const float of_b = chooser.group_worth[b];
      return of_a != of_b ? of_a > of_b : a < b;
    });
  }

  // Chooses among the scored blocks.
  void ChooseBlocks(Chooser& chooser, std::span<int32_t> chosen) const {
    const auto blocks = static_cast<size_t>(BlocksOf(chooser.open));
    const std::span<float> worth = chooser.block_worth.first(blocks);
    std::ranges::fill(worth, -kInfinity);
    for (int64_t head = 0; head < chooser.fine.rows; ++head) {
      const auto scores = chooser.fine.RowSpan(head).first(blocks * static_cast<size_t>(parts_));
      AddShares(scores, bounds_ ? chooser.totals[head] : TotalOf(kernels_, scores), parts_, worth);
    }
    auto end = chooser.best.begin();
    for (int32_t place = 0; place < std::ssize(worth); ++place) {
      if (BlockAt(chooser, place) >= choice_.first) *end++ = place;
    }
    const auto last = chooser.best.begin() + choice_.count - 1;
    std::ranges::nth_element(chooser.best.begin(), last, end, [&](int32_t a, int32_t b) {
      const float of_a = worth[a], of_b = worth[b];
      return of_a != of_b ? of_a > of_b : BlockAt(chooser, a) < BlockAt(chooser, b);
    });
    for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = BlockAt(chooser, chooser.best[i]);
    std::ranges::sort(chosen);
    chooser.sure = !bounds_ || chooser.open == groups_ || worth[*last] > NextWorth(chooser);
  }

 private:
  // worth = max(worth, the shares of its parts).
  static void AddShares(std::span<const float> scores, float total, int64_t parts,
                        std::span<float> worth) {
    for (size_t i = 0; i < scores.size(); ++i) {
      const float share = scores[i] - total;
      float& own = worth[i / static_cast<size_t>(parts)];
      own = share > own ? share : own;
    }
  }
  float NextWorth(const Chooser& chooser) const {
    return chooser.group_worth[chooser.order[chooser.open]];
  }
  int32_t BlockAt(const Chooser& chooser, int32_t place) const {
    const int64_t in_groups = place - rest();
    if (in_groups < 0) return static_cast<int32_t>(groups_ * group_blocks_ + place);
    const int64_t group = chooser.order[in_groups / group_blocks_];
    return static_cast<int32_t>(group * group_blocks_ + in_groups % group_blocks_);
  }

  const kernels::KernelTable& kernels_;
  BlockChoice choice_;
  int64_t parts_;  // of a block
  int64_t group_blocks_, groups_;
  bool bounds_;
};

}  // namespace

int64_t SelectByGroups(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                       const IndexView& index, const IndexView& groups, int64_t most,
                       MatrixView<const float> q, int64_t position, const BlockChoice& choice,
                       MatrixView<int32_t> chosen) {
  Workspace& workspace = exec.workspace;
  Workspace::Scope scope(workspace);
  const Search search(exec.kernels, index, groups, choice);
  assert(search.groups() > most && chosen.cols == choice.count);
  const int64_t kv_heads = shape.kv_heads, choices = chosen.rows;
  const int64_t heads = shape.heads / choices, group = shape.heads / kv_heads;
  const int64_t padded = (search.groups() + kTileTokens - 1) / kTileTokens * kTileTokens;
  const auto coarse = workspace.Matrix<float>(shape.heads, padded);
  ScoreBlocks(exec, shape, alibi, groups, q, position, search.groups(), coarse);

  const BlockScorer scorer(exec, shape, alibi, index, q, position);
  const int64_t room = search.bounds() ? search.groups() : most;
  const auto fine = workspace.Matrix<float>(shape.heads, search.PartsOf(room));
  const auto choosers = workspace.Matrix<Chooser>(1, choices).RowSpan(0);
  for (int64_t i = 0; i < choices; ++i) {
    const auto row = [&]<class T>(int64_t count, T) {
      return workspace.Matrix<T>(1, count).RowSpan(0);
    };
    std::construct_at(&choosers[i], Chooser{.coarse = coarse.Rows(i * heads, (i + 1) * heads),
                                            .fine = fine.Rows(i * heads, (i + 1) * heads),
                                            .totals = row(heads, float{}),
                                            .group_worth = row(search.groups(), float{}),
                                            .block_worth = row(search.BlocksOf(room), float{}),
                                            .order = row(search.groups(), int32_t{}),
                                            .best = row(search.BlocksOf(room), int32_t{}),
                                            .open = most});
  }
  exec.Parallel(choices, [&](int64_t i) { search.OrderGroups(choosers[i]); });
  const auto is_sure = [](const Chooser& chooser) { return chooser.sure; };
  while (!std::ranges::all_of(choosers, is_sure)) {
    int64_t tasks = 0;
    for (const Chooser& chooser : choosers) {
      tasks = std::max(tasks, (chooser.open - chooser.scored + kTaskGroups - 1) / kTaskGroups);
    }
    exec.Parallel(tasks * kv_heads, [&](int64_t task, int worker) {
      const int64_t kv_head = task / tasks;
      const Chooser& chooser = choosers[kv_head * choices / kv_heads];
      const auto scores = fine.Rows(kv_head * group, (kv_head + 1) * group);
      const auto score = [&](int64_t begin, int64_t to, int64_t parts) {
        scorer.Score(kv_head, begin, begin + parts, scores.Cols(to, to + parts), worker);
      };
      const int64_t parts = search.group_parts();
      const int64_t begin = chooser.scored + task % tasks * kTaskGroups;
      if (begin == 0) score(search.groups() * parts, 0, search.PartsOf(0));
      for (int64_t i = begin; i < std::min(chooser.open, begin + kTaskGroups); ++i) {
        score(chooser.order[i] * parts, search.PartsOf(i), parts);
      }
    });
    exec.Parallel(choices, [&](int64_t i) {
      Chooser& chooser = choosers[i];
      chooser.scored = chooser.open;
      if (chooser.sure) return;
      search.ChooseBlocks(chooser, chosen.RowSpan(i));
      if (!chooser.sure) chooser.open = std::min(search.groups(), 2 * chooser.open);
    });
  }
  int64_t read_bytes = 0;
  for (const Chooser& chooser : choosers) {
    read_bytes += ReadBytes(index, search.BlocksOf(chooser.open));
  }
  return ReadBytes(groups, search.groups()) + read_bytes / choices;
}

}  // namespace godwit::ops
