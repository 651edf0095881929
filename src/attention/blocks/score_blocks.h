// What the heads of a token make of the blocks of a text, by their representatives.
#pragma once

#include <cstdint>
#include <span>

#include "attention/blocks/block_index.h"
#include "attention/geometry.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// Parts of a block that are scored: its parts, or of signs its tiles, each by its mean and as high
// above that as its highest key.
inline int64_t ScoredParts(const BlockShape& shape) {
  return shape.signs() ? shape.tokens / kernels::kTileTokens : shape.parts;
}

// The query of one token, q [heads, head_dim] at `position`, beside the representatives of a layer.
// Lives as long as what it takes of the workspace.
class BlockScorer {
 public:
  BlockScorer(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
              int64_t layer, MatrixView<const float> q, int64_t position);

  // Of the scored parts [begin, end), which the index holds, for the heads that share a KV head:
  // scores [those heads, end - begin], times log2(e). ALiBi's part is that of a part's, or a
  // tile's, last key.
  void Score(int64_t kv_head, int64_t begin, int64_t end, MatrixView<float> scores,
             int worker) const;

 private:
  // To a row of integers: [head_dim], with the scale, which is returned.
  float Quantize(const float* q, int64_t head_dim, int64_t row);
  void MakeSignQueries(const Exec& exec, MatrixView<const float> q);
  void ScoreVectors(int64_t kv_head, int64_t begin, int64_t end, MatrixView<float> scores,
                    int worker) const;
  // Onto what their means are given.
  void AddSigns(int64_t kv_head, int64_t begin, int64_t end, MatrixView<float> scores,
                int worker) const;

  const kernels::KernelTable& kernels_;
  const AttentionGeometry& geometry_;
  const BlockIndex& index_;
  const BlockIndex& vectors_;  // the index, or of signs their means
  int64_t layer_, position_;
  int64_t group_;  // heads that share a KV head
  int64_t rows_;   // of integers for them
  // Of vectors: (q, |q|), or q alone, with the scale and the sum of each row; of the means of signs
  // q in units of the levels, and behind the rows of a KV head those of what their rounding left.
  // And of each worker a tile of biases and one of scores.
  std::span<float> scales_;
  std::span<int32_t> sums_;
  MatrixView<int8_t> integers_;
  MatrixView<float> biases_, tiles_;
  // Of signs: what the levels of four of them add up to, and where a KV head needs them finer.
  std::span<float> steps_;
  std::span<int32_t> offsets_;
  MatrixView<uint8_t> tables_, fine_;
  std::span<bool> has_fine_;
};

// Of the first `blocks` of a layer, for the query of one token: scores [heads, blocks *
// ScoredParts, rounded up to kTileTokens] as BlockScorer has them, and -infinity behind the last.
// On all cores.
void ScoreBlocks(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
                 int64_t layer, MatrixView<const float> q, int64_t position, int64_t blocks,
                 MatrixView<float> scores);

}  // namespace godwit
