#include "ops/attention.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <memory>

#include "base/error.h"
#include "ops/quantize.h"

namespace godwit::ops {
namespace {

using kernels::AttendTileArgs;
using kernels::kStateHeader;
using kernels::kTileTokens;
using kernels::TileSpan;

constexpr int64_t kStretchTokens = kStretchTiles * kTileTokens;
constexpr int64_t kBlockRows = 64;  // query rows that go through one tile together

// The most scratch memory for states of stretches that wait to be merged: that of one token with 32
// heads of 128 at seven million positions. 64 tokens at a million would ask for more than 1 GiB.
constexpr int64_t kMostStateBytes = int64_t{128} << 20;

using AttendTile = void (*)(const AttendTileArgs&) noexcept;

AttendTile SelectKernel(const kernels::KernelTable& kernels, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kernels.attend_tile_f32;
    case DType::kF16:
      return kernels.attend_tile_f16;
    case DType::kBF16:
      return kernels.attend_tile_bf16;
    case DType::kI8:
      return kernels.attend_tile_i8;
    default:
      Throw(ErrorKind::kUnsupported, "no attention over a KV cache stored as {}", Name(dtype));
  }
}

// Query rows [begin, end) of one KV head, in head-major order.
struct RowBlock {
  int64_t kv_head;
  int64_t begin;
  int64_t end;
  int64_t rows() const { return end - begin; }
};

// A run of stretches of one source that some row of a block may see.
struct StretchRun {
  int64_t first;
  int64_t last;  // past the end
  int64_t count() const { return last - first; }
};

class Attender {
 public:
  Attender(const Exec& exec, const AttentionShape& shape, const Alibi& alibi, int64_t tokens,
           std::span<const float> sink_logits)
      : exec_(exec),
        shape_(shape),
        alibi_(alibi),
        tokens_(tokens),
        group_(shape.heads / shape.kv_heads),
        state_stride_(kStateHeader + kernels::PadToLanes(shape.head_dim)),
        sinks_(
            exec.workspace.Matrix<float>(static_cast<int64_t>(sink_logits.size()), state_stride_)) {
    // A key of that score whose value is zero.
    for (int64_t head = 0; head < sinks_.rows; ++head) {
      std::fill_n(sinks_.Row(head), state_stride_, 0.0f);
      sinks_.Row(head)[0] = sink_logits[static_cast<size_t>(head)];
      sinks_.Row(head)[1] = 1.0f;
    }
  }

  int64_t state_stride() const { return state_stride_; }
  int64_t rows_per_head() const { return tokens_ * group_; }

  void Clear(int64_t rows, float* states) const {
    std::fill_n(states, rows * state_stride_, 0.0f);
    for (int64_t row = 0; row < rows; ++row)
      states[row * state_stride_] = -std::numeric_limits<float>::infinity();
  }

  StretchRun Stretches(const AttentionSource& source, const RowBlock& block) const {
    int64_t begin = INT64_MAX;
    int64_t end = 0;
    for (int64_t token = block.begin / group_; token <= (block.end - 1) / group_; ++token) {
      const KvRange range = source.visible[static_cast<size_t>(token)];
      if (range.begin >= range.end) continue;
      begin = std::min(begin, range.begin);
      end = std::max(end, range.end);
    }
    if (begin >= end) return {0, 0};
    return {begin / kStretchTokens, (end - 1) / kStretchTokens + 1};
  }

  // Folds one stretch into fresh states of the block's rows.
  void FoldStretch(const AttentionSource& source, const RowBlock& block, int64_t stretch,
                   float* states) const {
    Clear(block.rows(), states);
    const AttendTile attend = SelectKernel(exec_.kernels, source.kv.dtype);
    const int64_t first_row = block.kv_head * rows_per_head() + block.begin;
    const bool scaled = source.kv.dtype == DType::kI8;
    const bool biased = !alibi_.slopes.empty();
    alignas(64) float bias[kBlockRows * kTileTokens];  // left alone if there is none
    for (int64_t tile = stretch * kStretchTiles; tile < (stretch + 1) * kStretchTiles; ++tile) {
      TileSpan spans[kBlockRows];
      if (!Spans(source, block, tile * kTileTokens, spans)) continue;
      if (biased) Biases(source, block, tile * kTileTokens, spans, bias);
      const bool last = tile + 1 == (stretch + 1) * kStretchTiles;
      attend({.q = source.q.Row(first_row),
              .q_stride = source.q.stride,
              .spans = spans,
              .rows = block.rows(),
              .k = source.kv.Keys(block.kv_head, tile),
              .v = source.kv.Values(block.kv_head, tile),
              .head_dim = shape_.head_dim,
              .scale = shape_.scale,
              .bias = biased ? bias : nullptr,
              .state = states,
              .state_stride = state_stride_,
              .next_k = last ? nullptr : source.kv.Keys(block.kv_head, tile + 1),
              .next_v = last ? nullptr : source.kv.Values(block.kv_head, tile + 1),
              .k_scales = scaled ? source.kv.Scales(block.kv_head, tile) : nullptr,
              .v_scales = scaled ? source.kv.Scales(block.kv_head, tile) + kTileTokens : nullptr,
              .q_scales = source.q_scales == nullptr ? nullptr : source.q_scales + first_row});
    }
  }

  void Merge(const float* from, int64_t rows, float* into) const {
    for (int64_t row = 0; row < rows; ++row) {
      exec_.kernels.merge_state(from + row * state_stride_, shape_.head_dim,
                                into + row * state_stride_);
    }
  }

  // The states of all that the block's rows see, to the output. Sinks come in here, once for a
  // query, whoever added up its keys.
  void Finish(const RowBlock& block, float* states, MatrixView<float> out) const {
    for (int64_t row = block.begin; row < block.end; ++row) {
      const int64_t head = block.kv_head * group_ + row % group_;
      float* state = states + (row - block.begin) * state_stride_;
      if (sinks_.rows > 0) exec_.kernels.merge_state(sinks_.Row(head), shape_.head_dim, state);
      exec_.kernels.finish_state(state, shape_.head_dim,
                                 out.Row(row / group_) + head * shape_.head_dim);
    }
  }

 private:
  // The part of the tile at `position` that each row sees. False if no row sees any of it.
  bool Spans(const AttentionSource& source, const RowBlock& block, int64_t position,
             TileSpan* spans) const {
    bool any = false;
    for (int64_t row = block.begin; row < block.end; ++row) {
      const KvRange range = source.visible[static_cast<size_t>(row / group_)];
      const int64_t begin = std::clamp<int64_t>(range.begin - position, 0, kTileTokens);
      const int64_t end = std::clamp<int64_t>(range.end - position, begin, kTileTokens);
      spans[row - block.begin] = {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
      any |= begin < end;
    }
    return any;
  }

  // ALiBi's part in the scores of that tile: bias [rows, kTileTokens], for the rows that see any.
  void Biases(const AttentionSource& source, const RowBlock& block, int64_t position,
              const TileSpan* spans, float* bias) const {
    for (int64_t row = block.begin; row < block.end; ++row) {
      const int64_t i = row - block.begin;
      if (spans[i].begin >= spans[i].end) continue;
      FillAlibi(alibi_, block.kv_head * group_ + row % group_,
                source.places[static_cast<size_t>(row / group_)], position,
                {bias + i * kTileTokens, static_cast<size_t>(kTileTokens)});
    }
  }

  const Exec& exec_;
  const AttentionShape& shape_;
  const Alibi& alibi_;
  int64_t tokens_;
  int64_t group_;
  int64_t state_stride_;
  MatrixView<float> sinks_;  // [heads, state_stride], or no rows
};

// Many rows: a core takes a block of rows through all that the block sees.
void AttendWide(const Exec& exec, const AttentionShape& shape, const Attender& attender,
                std::span<const AttentionSource> sources, MatrixView<float> out) {
  const int64_t blocks = (attender.rows_per_head() + kBlockRows - 1) / kBlockRows;
  const auto scratch =
      exec.workspace.Matrix<float>(exec.pool.threads(), 2 * kBlockRows * attender.state_stride());
  exec.Parallel(shape.kv_heads * blocks, [&](int64_t task, int worker) {
    const int64_t begin = task % blocks * kBlockRows;
    const RowBlock block{task / blocks, begin,
                         std::min(attender.rows_per_head(), begin + kBlockRows)};
    float* total = scratch.Row(worker);
    float* stretch_states = total + kBlockRows * attender.state_stride();
    attender.Clear(block.rows(), total);
    for (const AttentionSource& source : sources) {
      const StretchRun run = attender.Stretches(source, block);
      for (int64_t stretch = run.first; stretch < run.last; ++stretch) {
        // A block over a million keys is too long to wait for; Parallel throws in the end.
        if (exec.cancel != nullptr && exec.cancel->cancelled()) return;
        attender.FoldStretch(source, block, stretch, stretch_states);
        attender.Merge(stretch_states, block.rows(), total);
      }
    }
    attender.Finish(block, total, out);
  });
}

// Few rows over a long context: the cores share the stretches of each head and merge afterwards.
void AttendDeep(const Exec& exec, const AttentionShape& shape, const Attender& attender,
                std::span<const AttentionSource> sources, int64_t stretches,
                MatrixView<float> out) {
  const int64_t rows = attender.rows_per_head();
  const RowBlock all{0, 0, rows};
  const auto states =
      exec.workspace.Matrix<float>(shape.kv_heads * stretches, rows * attender.state_stride());
  exec.Parallel(shape.kv_heads * stretches, [&](int64_t task) {
    int64_t index = task % stretches;
    for (const AttentionSource& source : sources) {
      const StretchRun run = attender.Stretches(source, all);
      if (index < run.count()) {
        attender.FoldStretch(source, {task / stretches, 0, rows}, run.first + index,
                             states.Row(task));
        return;
      }
      index -= run.count();
    }
  });
  exec.Parallel(shape.kv_heads, [&](int64_t kv_head) {
    float* total = states.Row(kv_head * stretches);
    for (int64_t i = 1; i < stretches; ++i) {
      attender.Merge(states.Row(kv_head * stretches + i), rows, total);
    }
    attender.Finish({kv_head, 0, rows}, total, out);
  });
}

// The same sources, their queries quantized row by row: each head of each token has its own scale.
std::span<const AttentionSource> WithInt8Queries(const Exec& exec,
                                                 std::span<const AttentionSource> sources) {
  const auto quantized = exec.workspace.Matrix<AttentionSource>(1, std::ssize(sources)).RowSpan(0);
  for (size_t i = 0; i < sources.size(); ++i) {
    const MatrixView<const float> q = sources[i].q;
    if (sources[i].kv.dtype != DType::kI8 || q.cols > kernels::kMaxHeadDimI8) {
      Throw(ErrorKind::kUnsupported,
            "int8 attention with heads of {} over a KV cache stored as {}, expected at most {} and "
            "I8",
            q.cols, Name(sources[i].kv.dtype), kernels::kMaxHeadDimI8);
    }
    const auto integers = exec.workspace.Matrix<float>(q.rows, q.cols);
    float* const scales = exec.workspace.Matrix<float>(1, q.rows).data;
    const auto bytes = exec.workspace.Matrix<int8_t>(exec.pool.threads(), q.cols + kernels::kQuad);
    exec.ParallelRows(q.rows, q.cols, [&](int64_t row, int worker) {
      scales[row] = QuantizeRow(exec.kernels, q.Row(row), q.cols, bytes.Row(worker)).scale;
      std::copy_n(bytes.Row(worker), q.cols, integers.Row(row));
    });
    std::construct_at(&quantized[i], sources[i]);
    quantized[i].q = integers;
    quantized[i].q_scales = scales;
  }
  return quantized;
}

}  // namespace

void Attention(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
               std::span<const AttentionSource> sources, std::span<const float> sink_logits,
               MatrixView<float> out) {
  assert(sink_logits.empty() || static_cast<int64_t>(sink_logits.size()) == shape.heads);
  assert(alibi.slopes.empty() || static_cast<int64_t>(alibi.slopes.size()) == shape.heads);
  assert(out.cols == shape.heads * shape.head_dim && shape.heads % shape.kv_heads == 0);
  if (out.rows == 0) return;
  Workspace::Scope scope(exec.workspace);
  if (shape.int8_products) sources = WithInt8Queries(exec, sources);
  const Attender attender(exec, shape, alibi, out.rows, sink_logits);

  int64_t stretches = 0;
  for (const AttentionSource& source : sources) {
    assert(alibi.slopes.empty() || static_cast<int64_t>(source.places.size()) == out.rows);
    stretches += attender.Stretches(source, {0, 0, attender.rows_per_head()}).count();
  }
  const int64_t rows = attender.rows_per_head();
  const int64_t state_bytes = shape.kv_heads * stretches * rows * attender.state_stride() *
                              static_cast<int64_t>(sizeof(float));
  if (stretches > 1 && rows <= kBlockRows && state_bytes <= kMostStateBytes) {
    AttendDeep(exec, shape, attender, sources, stretches, out);
  } else {
    AttendWide(exec, shape, attender, sources, out);
  }
}

}  // namespace godwit::ops
