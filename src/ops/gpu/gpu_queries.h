// Queries on their way to a GPU.
#pragma once

#include <cstdint>

#include "cuda/ops/matrix.h"
#include "ops/attention.h"
#include "ops/exec.h"

namespace godwit::ops {

// Some rows of a source, whose queries lie in head-major order.
struct QueryRows {
  int64_t all;  // rows of the source
  int64_t begin;
  int64_t rows;
  int64_t group;  // heads for each KV head
};

// Copies queries of a source into memory of the host [rows * heads, head_dim], in head-major order.
// They are as attention on the CPU reads them: rounded beside keys in BF16.
void PutQueries(const Exec& exec, const AttentionSource& source, const QueryRows& rows,
                cuda::DeviceMatrix<float> to);

}  // namespace godwit::ops
