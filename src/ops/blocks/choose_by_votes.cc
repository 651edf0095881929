#include "ops/blocks/choose_by_votes.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>

#include "ops/alibi.h"
#include "ops/key_product.h"

namespace godwit::ops {
namespace {

// Tiles whose keys a core scores, or to which it adds votes, at a time.
constexpr int64_t kVotingTiles = 8;

struct TokenRange {
  int64_t begin, end;
};

// Adds the votes of one query. The tokens of a task are told apart by their tiles.
class Voting {
 public:
  Voting(const Exec& exec, const AttentionShape& shape, const Alibi& alibi, const KvView& kv,
         int64_t tokens)
      : exec_(exec),
        shape_(shape),
        alibi_(alibi),
        kv_(kv),
        group_(shape.heads / shape.kv_heads),
        scores_(exec.workspace.Matrix<float>(group_, TilesOf(tokens) * kTileTokens)),
        sums_(exec.workspace.Matrix<kernels::PowerSum>(1, group_).RowSpan(0)),
        scratch_(exec.workspace.Matrix<float>(
            exec.pool.threads(),
            kTileTokens + KeyProduct::ScratchFloats(kv, shape.head_dim, group_))) {}

  // votes [choices, candidates.end - candidates.begin] gets what the heads give these tokens.
  void Add(const PlacedQuery& query, const TokenRange& candidates, MatrixView<float> votes) const {
    Workspace::Scope scope(exec_.workspace);
    const KeyProduct product(exec_, kv_,
                             {query.q.data(), shape_.heads, shape_.head_dim, shape_.head_dim});
    const int64_t seen = query.position + 1;
    for (int64_t kv_head = 0; kv_head < shape_.kv_heads; ++kv_head) {
      ForTiles({0, seen}, [&](int64_t begin, int64_t end, int worker) {
        for (int64_t tile = begin; tile < end; ++tile) {
          Score(product, query.position, kv_head, tile, worker);
        }
      });
      exec_.Parallel(group_, [&](int64_t row) {
        sums_[row] = exec_.kernels.sum_powers(scores_.Row(row), seen);
      });
      float* const own = votes.Row(kv_head * votes.rows / shape_.kv_heads);
      ForTiles({candidates.begin, std::min(candidates.end, seen)},
               [&](int64_t begin, int64_t end, int) {
                 const int64_t first = std::max(begin * kTileTokens, candidates.begin);
                 const int64_t last = std::min({end * kTileTokens, candidates.end, seen});
                 AddVotes({first, last}, own + (first - candidates.begin));
               });
    }
  }

 private:
  static int64_t TilesOf(int64_t tokens) { return (tokens + kTileTokens - 1) / kTileTokens; }

  // Calls body(begin, end, worker) for tiles [begin, end) that hold the tokens, on all cores.
  template <typename Body>
  void ForTiles(const TokenRange& tokens, const Body& body) const {
    if (tokens.begin >= tokens.end) return;
    const int64_t first = tokens.begin / kTileTokens, last = TilesOf(tokens.end);
    exec_.Parallel((last - first + kVotingTiles - 1) / kVotingTiles, [&](int64_t task, int worker) {
      const int64_t begin = first + task * kVotingTiles;
      body(begin, std::min(last, begin + kVotingTiles), worker);
    });
  }

  // Sets the scores (log2) of a tile for the heads that share a KV head.
  void Score(const KeyProduct& product, int64_t position, int64_t kv_head, int64_t tile,
             int worker) const {
    float* const bias = scratch_.Row(worker);
    float* const own = scores_.Row(0) + tile * kTileTokens;
    product.Score(kv_head * group_, group_, kv_head, tile, bias + kTileTokens, own, scores_.stride);
    for (int64_t row = 0; row < group_; ++row) {
      FillAlibi(alibi_, kv_head * group_ + row, {.query = position, .shift = 0}, tile * kTileTokens,
                {bias, static_cast<size_t>(kTileTokens)});
      float* const score = own + row * scores_.stride;
      for (int64_t j = 0; j < kTileTokens; ++j) {
        score[j] = std::numbers::log2e_v<float> * (shape_.scale * score[j] + bias[j]);
      }
    }
  }

  void AddVotes(const TokenRange& tokens, float* votes) const {
    for (int64_t row = 0; row < group_; ++row) {
      const float* const score = scores_.Row(row);
      const kernels::PowerSum& all = sums_[row];
      for (int64_t p = tokens.begin; p < tokens.end; ++p) {
        const float vote = std::exp2(score[p] - all.maximum) / all.sum;
        votes[p - tokens.begin] += vote > 0 ? vote : 0;  // NaN counts nothing
      }
    }
  }

  const Exec& exec_;
  const AttentionShape& shape_;
  const Alibi& alibi_;
  const KvView& kv_;
  int64_t group_;                      // heads that share a KV head
  MatrixView<float> scores_;           // [group, tokens]
  std::span<kernels::PowerSum> sums_;  // [group]
  MatrixView<float> scratch_;          // of each core: a tile of biases, and that of products
};

}  // namespace

void ChooseByVotes(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                   const KvView& kv, int64_t block_tokens, int64_t pool_tokens,
                   std::span<const PlacedQuery> queries, int64_t first, int64_t last,
                   MatrixView<int32_t> chosen) {
  assert(first + chosen.cols <= last);
  Workspace::Scope scope(exec.workspace);
  const TokenRange candidates{first * block_tokens, last * block_tokens};
  const auto votes = exec.workspace.Matrix<float>(chosen.rows, candidates.end - candidates.begin);
  for (int64_t i = 0; i < votes.rows; ++i) std::ranges::fill(votes.RowSpan(i), 0.0f);
  int64_t tokens = 0;
  for (const PlacedQuery& query : queries) tokens = std::max(tokens, query.position + 1);
  const Voting voting(exec, shape, alibi, kv, tokens);
  for (const PlacedQuery& query : queries) voting.Add(query, candidates, votes);

  const auto pooled = exec.workspace.Matrix<double>(chosen.rows, last - first);
  const auto orders = exec.workspace.Matrix<int32_t>(chosen.rows, last - first);
  exec.Parallel(chosen.rows, [&](int64_t i) {
    const auto of_tokens = votes.RowSpan(i);
    const auto of_blocks = pooled.RowSpan(i);
    for (int64_t block = 0; block < std::ssize(of_blocks); ++block) {
      const int64_t begin = std::max<int64_t>(0, block * block_tokens - pool_tokens);
      const int64_t end = std::min(std::ssize(of_tokens), (block + 1) * block_tokens + pool_tokens);
      double sum = 0;
      for (int64_t p = begin; p < end; ++p) sum += double{of_tokens[p]};
      of_blocks[block] = sum;
    }
    const auto order = orders.RowSpan(i);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::partial_sort(order, order.begin() + chosen.cols, [&](int32_t a, int32_t b) {
      return of_blocks[a] != of_blocks[b] ? of_blocks[a] > of_blocks[b] : a < b;
    });
    for (int64_t c = 0; c < chosen.cols; ++c) {
      chosen.Row(i)[c] = order[c] + static_cast<int32_t>(first);
    }
    std::ranges::sort(chosen.RowSpan(i));
  });
}

}  // namespace godwit::ops
