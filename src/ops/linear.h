// Matrix products with packed weights, and the packing itself.
#pragma once

#include <functional>

#include "ops/exec.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

// out = x * w^T + bias. x [tokens, w.inputs], out [tokens, w.outputs]; they may not overlap.
// A row of `out` is the same, to the bit, whatever other rows are computed with it.
void Linear(const Exec& exec, MatrixView<const float> x, const Weight& w, MatrixView<float> out);

// Packs a weight of the given shape; its bias is left empty. row(i) points at the `inputs` elements
// of output i in `dtype` (F32, F16 or BF16), at any alignment, and is called from several threads.
Weight PackWeight(ThreadPool& pool, DType dtype, int64_t outputs, int64_t inputs,
                  const std::function<const void*(int64_t output)>& row);

// Row `output` of a packed weight, widened: out [w.inputs]. For tied embeddings, which are stored
// once, as the output head.
void UnpackRow(const Weight& w, int64_t output, float* out);

}  // namespace godwit::ops
