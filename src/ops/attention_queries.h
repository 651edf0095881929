// Queries as the attention kernels of a storage read them (kernels::AttendTileArgs).
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "ops/attention.h"
#include "tensor/view.h"

namespace godwit::ops {

struct KernelQueries {
  const void* data;  // [rows, stride]
  int64_t stride;    // elements
  // Of int8: [rows] each.
  const float* scales = nullptr;
  const int32_t* sums = nullptr;
};

// Floats of scratch memory for the queries of so many rows.
constexpr int64_t QueryScratchFloats(int64_t head_dim, int64_t rows) {
  return rows * (kernels::PadToLanes(head_dim) + kernels::kLaneFloats);
}

// q [rows, head_dim] for keys and values of a cache: in place for F32 and F16, rounded to bf16 for
// BF16 and I8, in int8, each with a scale of its own, for int8_products; multiplied by a Hadamard
// matrix before that, where the keys are. scratch: 64-byte aligned, in use as long as the result.
KernelQueries PrepareQueries(const kernels::KernelTable& kernels, const KvView& kv,
                             bool int8_products, MatrixView<const float> q, float* scratch);

}  // namespace godwit::ops
