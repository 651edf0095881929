// Token ids to rows.
#pragma once

#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

// out[i] = row tokens[i] of the table, widened. out [tokens, table.cols]. Ids must be in range.
void Embed(const Exec& exec, std::span<const int32_t> tokens, const Table& table,
           MatrixView<float> out);

// The same from a packed weight: an output head that doubles as the embedding (tied weights), or
// rows of groups. out [tokens, w.inputs].
void Embed(const Exec& exec, std::span<const int32_t> tokens, const Weight& w,
           MatrixView<float> out);

}  // namespace godwit::ops
