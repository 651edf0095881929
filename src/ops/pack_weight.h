// Weights into the packed layout in which the kernels read them, and rows out of it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/group_packing.h"
#include "tensor/arena.h"
#include "tensor/weight.h"

namespace godwit::ops {

// An output of grouped weights: its codes and scales, group by group.
using kernels::GroupedRow;

// Makes a weight of the given shape stored as `storage`; its bias is left empty. row(i) points at
// the `inputs` elements of output i in `dtype`, at any alignment, and is called from several
// threads.
//
// dtype F32, F16 or BF16 becomes F32, BF16, I8 or grouped, or stays as it is. To bf16 it is
// rounded, to int8 quantized with a scale for each output (ops/quantize.h), to groups as
// QuantizeGroups has it. An output that is not finite gets the scale NaN. I8 has `scales`,
// [outputs]: it stays as it is, or becomes something else by way of scale * integer in f32. Throws
// Error(kUnsupported) for int8 of more inputs than kernels::kMaxDepthI8. The panels are taken from
// `arena`, if there is one.
Weight PackWeight(ThreadPool& pool, DType dtype, int64_t outputs, int64_t inputs,
                  const std::function<const void*(int64_t output)>& row, DType storage,
                  std::vector<float> scales = {}, Arena* arena = nullptr);

// Makes a weight of groups from any source. fill(output, row, factor) sets the numbers of an
// output, and is called from several threads. The output's scales stand for `factor` times as much
// (1 unless it is set).
Weight PackGroups(ThreadPool& pool, const GroupFormat& format, int64_t outputs, int64_t inputs,
                  const std::function<void(int64_t output, GroupedRow& row, float& factor)>& fill,
                  Arena* arena = nullptr);

// A power of two. Divided by it, the numbers fit into F16 as well as possible; 1 if they are F16s.
float FactorForF16(std::span<const float> numbers);

// The bytes that such a weight takes, without its bias.
int64_t PackedBytes(DType storage, int64_t outputs, int64_t inputs);
int64_t PackedBytes(const GroupFormat& format, int64_t outputs, int64_t inputs);

// Row `output` of a packed weight, widened: out [w.inputs]. For tied embeddings, which are stored
// once, as the output head.
void UnpackRow(const Weight& w, int64_t output, float* out);

}  // namespace godwit::ops
