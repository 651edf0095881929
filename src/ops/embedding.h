// Token ids to rows.
#pragma once

#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

// out[i] = the row of tokens[i] in the table, widened. out [tokens, table.cols]. first: the token
// of the table's first row. Tokens without a row in it, which other ranks have, become zeros.
void Embed(const Exec& exec, std::span<const int32_t> tokens, const Table& table,
           MatrixView<float> out, int64_t first = 0);

// The same from a packed weight: an output head that doubles as the embedding (tied weights), or
// rows of groups. out [tokens, w.inputs].
void Embed(const Exec& exec, std::span<const int32_t> tokens, const Weight& w,
           MatrixView<float> out, int64_t first = 0);

}  // namespace godwit::ops
