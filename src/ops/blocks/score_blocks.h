// The scores that the heads of a token give the blocks of a text, by their representatives.
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention.h"
#include "ops/blocks/index_view.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// The query of one token, q [heads, head_dim] at `position`, beside the representatives of a layer.
// Lives as long as the memory that it takes of the workspace.
class BlockScorer {
 public:
  BlockScorer(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
              const IndexView& index, MatrixView<const float> q, int64_t position);

  // Scores parts [begin, end), which the index holds, for the heads that share a KV head: scores
  // [those heads, end - begin], times log2(e). ALiBi counts from the last key of a part or tile.
  void Score(int64_t kv_head, int64_t begin, int64_t end, MatrixView<float> scores,
             int worker) const;

 private:
  // Quantizes [head_dim] numbers to a row of integers, and returns the scale.
  float Quantize(const float* q, int64_t head_dim, int64_t row);
  void MakeSignQueries(const Exec& exec, MatrixView<const float> q);
  void ScoreVectors(int64_t kv_head, int64_t begin, int64_t end, MatrixView<float> scores,
                    int worker) const;
  // Adds the scores of signs to those of their means.
  void AddSigns(int64_t kv_head, int64_t begin, int64_t end, MatrixView<float> scores,
                int worker) const;

  const kernels::KernelTable& kernels_;
  const AttentionShape& shape_;
  const Alibi& alibi_;
  const IndexView& index_;
  const IndexPages& vectors_;  // of parts, or for signs of the means of tiles
  int64_t vector_tokens_;      // the tokens for which one of them stands
  int64_t position_;
  int64_t group_;  // heads that share a KV head
  int64_t rows_;   // rows of integers for them
  // The queries as integers. For vectors: (q, |q|), or q alone, with the scale and the sum of each
  // row. For the means of signs: q in units of the levels, and behind the rows of a KV head rows of
  // the rounding errors. biases_ and tiles_: for each worker a tile of biases and one of scores.
  std::span<float> scales_;
  std::span<int32_t> sums_;
  MatrixView<int8_t> integers_;
  MatrixView<float> biases_, tiles_;
  // The tables of signs: sums of the levels of four dimensions, and finer ones where a KV head
  // needs them.
  std::span<float> steps_;
  std::span<int32_t> offsets_;
  MatrixView<uint8_t> tables_, fine_;
  std::span<bool> has_fine_;
};

// Scores the first `blocks` of a layer, for the query of one token. scores [heads, blocks *
// ScoredParts, rounded up to kTileTokens] are as BlockScorer has them, and -infinity behind the
// last. On all cores.
void ScoreBlocks(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                 const IndexView& index, MatrixView<const float> q, int64_t position,
                 int64_t blocks, MatrixView<float> scores);

}  // namespace godwit::ops
