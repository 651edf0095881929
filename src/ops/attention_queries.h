// Queries in the form in which the attention kernels of a storage read them
// (kernels::AttendTileArgs).
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "ops/attention.h"
#include "tensor/view.h"

namespace godwit::ops {

struct KernelQueries {
  const void* data;  // [rows, stride]
  int64_t stride;    // elements
  // The scales and sums of int8 queries, [rows] each.
  const float* scales = nullptr;
  const int32_t* sums = nullptr;
};

// Floats of scratch memory for the queries of so many rows.
constexpr int64_t QueryScratchFloats(int64_t head_dim, int64_t rows) {
  return rows * (kernels::PadToLanes(head_dim) + kernels::kLaneFloats);
}

// Prepares q [rows, head_dim] for keys and values of a cache. They stay in place for F32 and F16,
// are rounded to bf16 for BF16 and I8, and become int8 with a scale each for int8_products. Where
// keys are multiplied by a Hadamard matrix, queries are, too, before that. scratch: 64-byte
// aligned, in use as long as the result.
KernelQueries PrepareQueries(const kernels::KernelTable& kernels, const KvView& kv,
                             bool int8_products, MatrixView<const float> q, float* scratch);

}  // namespace godwit::ops
