// Token ids to rows, and position encoding, on a device.
#pragma once

#include <cstdint>

#include "cuda/device.h"
#include "cuda/ops/matrix.h"
#include "tensor/dtype.h"

namespace godwit::cuda {

// Rows that are looked up.
struct DeviceTable {
  const void* data;     // [rows, cols] row-major, or if packed the panels of a bf16 weight
  DType dtype;          // F32, F16 or BF16
  bool packed = false;  // kernels/packing.h; BF16 alone
  int64_t rows;
  int64_t cols;
};

// out[i] = the row of tokens[i] in the table, widened. tokens [out.rows]. first: the token of the
// table's first row. Tokens without a row in it become zeros.
void EmbedTokens(const Stream& stream, const int32_t* tokens, const DeviceTable& table,
                 int64_t first, DeviceMatrix<float> out);

// Cosine and sine of every rotated pair at every token's position, and factors of queries.
struct DeviceRotary {
  const float* cos;  // [tokens, half], as sin is
  const float* sin;
  int64_t half;                        // of the rotated dimensions
  const float* query_scale = nullptr;  // [tokens], or null
  const float* query_gain = nullptr;   // [head_dim], or null
  bool rounded = false;                // to bf16, as queries of bf16 keys are
};

// Copies x [tokens, heads * out.cols] into out [tokens * heads, head_dim] in head-major order and
// rotates each row, as ops::RotateHeadMajor does.
void RotateHeads(const Stream& stream, DeviceMatrix<const float> x, int64_t heads, int64_t kv_heads,
                 const DeviceRotary& rotary, DeviceMatrix<float> out);

}  // namespace godwit::cuda
