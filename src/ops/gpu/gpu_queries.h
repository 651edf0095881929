// Queries on their way to a GPU.
#pragma once

#include "cuda/ops/matrix.h"
#include "ops/attention.h"
#include "ops/exec.h"

namespace godwit::ops {

// Copies the queries of a source into memory of the host [rows * heads, head_dim], as attention on
// the CPU reads them: rounded beside keys in BF16.
void PutQueries(const Exec& exec, const AttentionSource& source, cuda::DeviceMatrix<float> to);

}  // namespace godwit::ops
