#include "cuda/ops/attention.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "cuda/kernels/attend_tiles.h"
#include "cuda/kernels/merge_stretches.h"

namespace godwit::cuda {
namespace {

// The stretches that some token sees.
struct StretchRange {
  int64_t first;
  int64_t count;
};

StretchRange StretchesOf(const DeviceQueries& queries) {
  const int64_t last = std::min(queries.position + queries.tokens, queries.end) - 1;
  const int64_t begin = std::max(queries.begin, queries.position - queries.window + 1);
  if (begin > last) return {0, 0};
  const int64_t first = begin / kStretchTokens;
  return {first, last / kStretchTokens + 1 - first};
}

void CheckAttention(const DeviceAttentionShape& shape, const DevicePages& pages) {
  const DType dtype = pages.dtype;
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
    Throw(ErrorKind::kUnsupported, "attention on a GPU reads keys in F32, F16 or BF16, found {}",
          Name(dtype));
  }
  if (shape.value_dim > kMaxValueDim) {
    Throw(ErrorKind::kUnsupported, "attention on a GPU takes values of up to {} numbers, found {}",
          kMaxValueDim, shape.value_dim);
  }
}

template <class Kernel>
void LaunchStretches(const Stream& stream, int64_t stretches, const AttendPages::Args& args) {
  stream.Launch<Kernel>(
      {.x = stretches, .y = args.kv_heads, .z = (args.rows + Kernel::kRows - 1) / Kernel::kRows},
      args);
}

void LaunchAttention(const Stream& stream, const DeviceAttentionShape& shape,
                     const DevicePages& pages, const DeviceQueries& queries, float* scratch,
                     MergeStretches::Args merge) {
  CheckAttention(shape, pages);
  assert(queries.q.rows == queries.tokens * shape.heads && queries.q.cols == shape.head_dim);
  const StretchRange stretches = StretchesOf(queries);
  const int64_t group = shape.heads / shape.kv_heads, rows = queries.tokens * group;
  const AttendPages::Args args = {.q = queries.q.data,
                                  .q_stride = queries.q.stride,
                                  .pages = pages.pages,
                                  .head_bytes = pages.head_bytes,
                                  .value_offset = pages.value_offset,
                                  .dtype = pages.dtype,
                                  .kv_heads = shape.kv_heads,
                                  .rows = rows,
                                  .group = group,
                                  .position = queries.position,
                                  .begin = queries.begin,
                                  .end = queries.end,
                                  .window = queries.window,
                                  .first_stretch = stretches.first,
                                  .head_dim = shape.head_dim,
                                  .value_dim = shape.value_dim,
                                  .scale = shape.scale,
                                  .score_cap = shape.score_cap,
                                  .states = scratch};
  // The model alone chooses the kernel, so that the bits are the same for all rows.
  if (AttendTiles::Takes(pages.dtype, shape.head_dim, shape.value_dim)) {
    LaunchStretches<AttendTiles>(stream, stretches.count, args);
  } else {
    LaunchStretches<AttendPages>(stream, stretches.count, args);
  }
  merge.states = scratch;
  merge.stretches = stretches.count;
  merge.all_rows = queries.tokens * shape.heads;
  merge.rows = rows;
  merge.group = group;
  merge.value_dim = shape.value_dim;
  stream.Launch<MergeStretches>({.x = merge.all_rows}, merge);
}

}  // namespace

int64_t AttentionScratchBytes(const DeviceAttentionShape& shape, const DeviceQueries& queries) {
  return StretchesOf(queries).count * queries.tokens * shape.heads * StateFloats(shape.value_dim) *
         int64_t{sizeof(float)};
}

void Attend(const Stream& stream, const DeviceAttentionShape& shape, const DevicePages& pages,
            const DeviceQueries& queries, float* scratch, const float* sink_logits,
            const float* before, DeviceMatrix<float> out) {
  assert(out.rows == queries.tokens && out.cols == shape.heads * shape.value_dim);
  LaunchAttention(stream, shape, pages, queries, scratch,
                  {.before = before,
                   .sink_logits = sink_logits,
                   .merged = nullptr,
                   .out = out.data,
                   .out_stride = out.stride});
}

void AttendStates(const Stream& stream, const DeviceAttentionShape& shape, const DevicePages& pages,
                  const DeviceQueries& queries, float* scratch, const float* before,
                  float* states) {
  LaunchAttention(stream, shape, pages, queries, scratch,
                  {.before = before,
                   .sink_logits = nullptr,
                   .merged = states,
                   .out = nullptr,
                   .out_stride = 0});
}

}  // namespace godwit::cuda
