#include "ops/blocks/weigh_blocks.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/alibi.h"
#include "ops/key_product.h"

namespace godwit::ops {
namespace {

// Tokens that a core weighs at a time, at least one block.
constexpr int64_t kTaskTokens = 8 * kTileTokens;

}  // namespace

void WeighBlocks(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                 const KvView& kv, int64_t block_tokens, MatrixView<const float> q,
                 int64_t position, MatrixView<const int32_t> blocks, MatrixView<float> masses) {
  const int64_t group = shape.heads / shape.kv_heads;
  // A block smaller than a tile is weighed in its tile, whose scores serve its neighbours, too.
  const int64_t together = std::max(block_tokens, kTileTokens);
  Workspace::Scope scope(exec.workspace);
  const KeyProduct product(exec, kv, q);
  // Scratch memory of a core: scores, the biases of a tile, and that of products.
  const int64_t score_floats = group * together;
  const auto memory = exec.workspace.Matrix<float>(
      exec.pool.threads(),
      score_floats + kTileTokens + KeyProduct::ScratchFloats(kv, q.cols, group));
  const int64_t task_blocks = std::max<int64_t>(8, kTaskTokens / block_tokens);
  const int64_t tasks = (blocks.cols + task_blocks - 1) / task_blocks;
  exec.Parallel(tasks * shape.kv_heads, [&](int64_t task, int worker) {
    const int64_t kv_head = task / tasks, begin = task % tasks * task_blocks;
    const int32_t* const named = blocks.Row(kv_head * blocks.rows / shape.kv_heads);
    float* const scores = memory.Row(worker);
    float* const bias = scores + score_floats;
    float* const scratch = bias + kTileTokens;
    int64_t scored = -1;  // the first token of those in `scores`
    for (int64_t i = begin; i < std::min(blocks.cols, begin + task_blocks); ++i) {
      const int64_t token = named[i] * block_tokens, first = token - token % together;
      for (int64_t t = 0; first != scored && t < together; t += kTileTokens) {
        float* const own = scores + t;
        product.Score(kv_head * group, group, kv_head, (first + t) / kTileTokens, scratch, own,
                      together);
        for (int64_t row = 0; row < group; ++row) {
          FillAlibi(alibi, kv_head * group + row, {.query = position, .shift = 0}, first + t,
                    {bias, static_cast<size_t>(kTileTokens)});
          float* const score = own + row * together;
          for (int64_t j = 0; j < kTileTokens; ++j) {
            score[j] = std::numbers::log2e_v<float> * (shape.scale * score[j] + bias[j]);
          }
        }
      }
      scored = first;
      for (int64_t row = 0; row < group; ++row) {
        const kernels::PowerSum mass =
            exec.kernels.sum_powers(scores + row * together + token % together, block_tokens);
        masses.Row(kv_head * group + row)[i] = mass.maximum + std::log2(mass.sum);
      }
    }
  });
}

}  // namespace godwit::ops
