#include "cuda/ops/embedding.h"

#include <cassert>

#include "cuda/kernels/embed.h"
#include "cuda/kernels/rotate.h"

namespace godwit::cuda {

void EmbedTokens(const Stream& stream, const int32_t* tokens, const DeviceTable& table,
                 int64_t first, DeviceMatrix<float> out) {
  assert(out.cols == table.cols && (!table.packed || table.dtype == DType::kBF16));
  stream.Launch<Embed>({.x = out.rows}, {.tokens = tokens,
                                         .table = table.data,
                                         .dtype = table.dtype,
                                         .packed = table.packed,
                                         .table_rows = table.rows,
                                         .cols = table.cols,
                                         .first = first,
                                         .out = out.data,
                                         .out_stride = out.stride});
}

void RotateHeads(const Stream& stream, DeviceMatrix<const float> x, int64_t heads, int64_t kv_heads,
                 const DeviceRotary& rotary, DeviceMatrix<float> out) {
  assert(x.cols == heads * out.cols && out.rows == x.rows * heads);
  assert(heads % kv_heads == 0 && 2 * rotary.half <= out.cols);
  stream.Launch<Rotate>({.x = x.rows, .y = heads}, {.x = x.data,
                                                    .x_stride = x.stride,
                                                    .tokens = x.rows,
                                                    .group = heads / kv_heads,
                                                    .head_dim = out.cols,
                                                    .cos = rotary.cos,
                                                    .sin = rotary.sin,
                                                    .half = rotary.half,
                                                    .query_scale = rotary.query_scale,
                                                    .query_gain = rotary.query_gain,
                                                    .rounded = rotary.rounded,
                                                    .out = out.data,
                                                    .out_stride = out.stride});
}

}  // namespace godwit::cuda
