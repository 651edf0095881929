#include "ops/blocks/weigh_blocks.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/alibi.h"
#include "ops/key_product.h"

namespace godwit::ops {
namespace {

// Blocks that a core weighs at a time.
constexpr int64_t kTaskBlocks = 8;

}  // namespace

void WeighBlocks(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                 const KvView& kv, int64_t block_tokens, MatrixView<const float> q,
                 int64_t position, MatrixView<const int32_t> blocks, MatrixView<float> masses) {
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t tiles = block_tokens / kTileTokens;
  Workspace::Scope scope(exec.workspace);
  const KeyProduct product(exec, kv, q);
  // Scratch memory of a core: the scores of a block, the biases of a tile, and that of products.
  const int64_t score_floats = group * block_tokens;
  const auto memory = exec.workspace.Matrix<float>(
      exec.pool.threads(),
      score_floats + kTileTokens + KeyProduct::ScratchFloats(kv, q.cols, group));
  const int64_t tasks = (blocks.cols + kTaskBlocks - 1) / kTaskBlocks;
  exec.Parallel(tasks * shape.kv_heads, [&](int64_t task, int worker) {
    const int64_t kv_head = task / tasks, begin = task % tasks * kTaskBlocks;
    const int32_t* const named = blocks.Row(kv_head * blocks.rows / shape.kv_heads);
    float* const scores = memory.Row(worker);
    float* const bias = scores + score_floats;
    float* const scratch = bias + kTileTokens;
    for (int64_t i = begin; i < std::min(blocks.cols, begin + kTaskBlocks); ++i) {
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t tile = named[i] * tiles + t;
        float* const own = scores + t * kTileTokens;
        product.Score(kv_head * group, group, kv_head, tile, scratch, own, block_tokens);
        for (int64_t row = 0; row < group; ++row) {
          FillAlibi(alibi, kv_head * group + row, {.query = position, .shift = 0},
                    tile * kTileTokens, {bias, static_cast<size_t>(kTileTokens)});
          float* const score = own + row * block_tokens;
          for (int64_t j = 0; j < kTileTokens; ++j) {
            score[j] = std::numbers::log2e_v<float> * (shape.scale * score[j] + bias[j]);
          }
        }
      }
      for (int64_t row = 0; row < group; ++row) {
        const kernels::PowerSum mass =
            exec.kernels.sum_powers(scores + row * block_tokens, block_tokens);
        masses.Row(kv_head * group + row)[i] = mass.maximum + std::log2(mass.sum);
      }
    }
  });
}

}  // namespace godwit::ops
