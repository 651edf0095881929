// Copies of activations. Rooms above ops copy no numbers themselves.
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// out = from, [rows, cols] both. Columns of wider matrices are views, too (MatrixView::Cols).
void CopyRows(const Exec& exec, MatrixView<const float> from, MatrixView<float> out);

// Copies the queries of one of `tokens` tokens out of head-major order (attention.h): from [tokens
// * heads, head_dim], out [heads * head_dim].
void CopyToken(const AttentionShape& shape, int64_t tokens, int64_t token,
               MatrixView<const float> from, std::span<float> out);

}  // namespace godwit::ops
