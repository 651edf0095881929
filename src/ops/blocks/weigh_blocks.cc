#include "ops/blocks/weigh_blocks.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/alibi.h"
#include "ops/quantize.h"
#include "ops/widen_tile.h"

namespace godwit::ops {
namespace {

// Blocks that a core weighs at a time.
constexpr int64_t kTaskBlocks = 8;

// Products of queries with tiles of keys as packed weights of kTileTokens outputs (packing.h).
// Queries are rounded to bf16 where keys are bf16. For int8 keys a query has two int8 parts: the
// second holds the remainder of the first.
class KeyProduct {
 public:
  KeyProduct(const Exec& exec, const KvView& kv, MatrixView<const float> q)
      : kernels_(exec.kernels),
        kv_(kv),
        q_(q),
        head_dim_(q.cols),
        parts_(kv.dtype == DType::kI8 ? 2 : 1) {
    const int64_t rows = q.rows * parts_, width = kernels::PadToLanes(q.cols);
    if (kv.dtype == DType::kBF16) {
      const auto rounded = exec.workspace.Matrix<BF16>(rows, width);
      for (int64_t row = 0; row < rows; ++row) {
        std::fill_n(rounded.Row(row), width, BF16{});
        exec.kernels.f32_to_bf16(q.Row(row), q.cols, rounded.Row(row));
      }
      Take(rounded);
    } else if (kv.dtype == DType::kI8) {
      scales_ = exec.workspace.Matrix<float>(1, rows).data;
      sums_ = exec.workspace.Matrix<int32_t>(1, rows).data;
      const auto integers = exec.workspace.Matrix<int8_t>(rows, width);
      const auto rest = exec.workspace.Matrix<float>(1, q.cols).RowSpan(0);
      for (int64_t row = 0; row < rows; ++row) {
        if (row % 2 == 0) {
          std::copy_n(q.Row(row / 2), q.cols, rest.data());
          if (kv.hadamard) exec.kernels.hadamard(q.cols, rest.data());
        } else {
          SubtractRounded(integers.Row(row - 1), scales_[row - 1], q.cols, rest.data());
        }
        const auto part = QuantizeRow(exec.kernels, rest.data(), q.cols, integers.Row(row));
        scales_[row] = part.scale;
        sums_[row] = part.sum;
      }
      Take(integers);
    } else {
      Take(q);
    }
  }

  // Floats of scratch memory for this many queries.
  static int64_t ScratchFloats(const KvView& kv, int64_t head_dim, int64_t rows) {
    const int64_t keys = kv.narrow_keys ? WidenedKeyBytes(head_dim) : 0;
    return 2 * rows * kTileTokens + keys / static_cast<int64_t>(sizeof(float));
  }

  // Scores [rows, kTileTokens] with `stride`: queries [first, first + rows) by a tile of a head's
  // keys.
  void Score(int64_t first, int64_t rows, int64_t head, int64_t tile, float* scratch, float* scores,
             int64_t stride) const {
    const bool split = parts_ == 2;
    kernels::GemmArgs args{
        .a = rows_ + first * parts_ * row_bytes_,
        .a_stride = stride_,
        .w = WidenedKeys(kernels_, kv_, head_dim_, head, tile, scratch + 2 * rows * kTileTokens),
        .bias = nullptr,
        .out = split ? scratch : scores,
        .out_stride = split ? kTileTokens : stride,
        .rows = rows * parts_,
        .k = head_dim_,
        .columns = kTileTokens,
        .panel_begin = 0,
        .panel_end = 1};
    switch (kv_.dtype) {
      case DType::kF16:
        return kernels_.gemm_f16(args);
      case DType::kBF16:
        return kernels_.gemm_bf16(args);
      case DType::kI8:
        break;
      default:
        return kernels_.gemm_f32(args);
    }
    args.a_scales = scales_ + first * parts_;
    args.a_sums = sums_ + first * parts_;
    args.w_scales = kv_.Scales(head, tile);
    kernels_.gemm_i8(args);
    for (int64_t row = 0; row < rows; ++row) {
      const float* const parts = scratch + row * 2 * kTileTokens;
      kernels_.add(parts, parts + kTileTokens, kTileTokens, scores + row * stride);
    }
    if (const BF16* const centre = kv_.Centre(head, tile)) {
      kernels_.centre_scores({.q = q_.Row(first),
                              .q_stride = q_.stride,
                              .rows = rows,
                              .centre = centre,
                              .head_dim = head_dim_,
                              .scale = 1,
                              .bias = scores,
                              .bias_stride = stride});
    }
  }

 private:
  template <class T>
  void Take(MatrixView<T> rows) {
    rows_ = reinterpret_cast<const std::byte*>(rows.data);
    stride_ = rows.stride;
    row_bytes_ = rows.stride * static_cast<int64_t>(sizeof(T));
  }

  const kernels::KernelTable& kernels_;
  const KvView& kv_;
  MatrixView<const float> q_;
  int64_t head_dim_;
  int64_t parts_;  // of a query
  const std::byte* rows_ = nullptr;
  int64_t stride_ = 0;
  int64_t row_bytes_ = 0;
  float* scales_ = nullptr;
  int32_t* sums_ = nullptr;
};

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
