// The sum of rows that ranks computed apart.
#pragma once

#include <span>

#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// out[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ..., in the order of parts whatever the
// number of threads. parts [parts, n], one at least; out [n], which may be the first of them.
void SumParts(const Exec& exec, MatrixView<const float> parts, std::span<float> out);

}  // namespace godwit::ops
