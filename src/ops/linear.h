// Matrix products with packed weights.
#pragma once

#include <span>

#include "ops/exec.h"
#include "ops/linear_rows.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

// out = x * w^T + bias. x [tokens, w.inputs], made by NewLinearRows for a weight of this storage
// and filled; out [tokens, w.outputs], or of the first outputs so many panels' as it has columns;
// they may not overlap. A row of `out` is the same, to the
// bit, whatever other rows are computed with it, unless the weight's input has one scale for all of
// them (InputQuantization, kPerTensor): then it depends on them by what it is. Throws
// Error(kUnsupported) that names the weight if a row that was quantized held NaN or infinity.
void Linear(const Exec& exec, const LinearRows& x, const Weight& w, MatrixView<float> out);

// Several products at once, whose outputs do not overlap: of small ones, as of the experts that a
// token goes through, each alone has too little to do for all cores.
struct Product {
  const LinearRows* x;
  const Weight* w;
  MatrixView<float> out;
};
void Linear(const Exec& exec, std::span<const Product> products);

// Of one, for rows that are not in the weight's form yet.
void Linear(const Exec& exec, MatrixView<const float> x, const Weight& w, MatrixView<float> out);

}  // namespace godwit::ops
