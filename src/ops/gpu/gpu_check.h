// RequireNumbers: the refusal of rows that a GPU has quantized.
#pragma once

#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// Throws Error(kUnsupported) if a row of results holds NaN. A row that is not finite has the scale
// NaN when it is quantized, which all that is made of it becomes.
void RequireNumbers(const Exec& exec, MatrixView<const float> results);

}  // namespace godwit::ops
