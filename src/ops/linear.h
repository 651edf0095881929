// Matrix products with packed weights.
#pragma once

#include <span>

#include "ops/exec.h"
#include "ops/linear_rows.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

// Computes out = x * w^T + bias. x [tokens, w.inputs], made by NewLinearRows for a weight of this
// storage and filled. out [tokens, w.outputs], or the first outputs alone, as many panels' as it
// has columns. They may not overlap. A row of `out` is the same, to the bit, whatever other rows
// are computed with it. The exception is a weight whose input has one scale for all rows
// (InputQuantization, kPerTensor): there it depends on the others. Throws Error(kUnsupported) that
// names the weight if a row that was quantized held NaN or infinity.
void Linear(const Exec& exec, const LinearRows& x, const Weight& w, MatrixView<float> out);

// Computes several products at once, whose outputs do not overlap. Small products, as those of a
// token's experts, each alone have too little work for all cores. part: in a profile.
struct Product {
  const LinearRows* x;
  const Weight* w;
  MatrixView<float> out;
};
void Linear(const Exec& exec, std::span<const Product> products,
            StepPart part = StepPart::kProducts);

// Computes one product, for rows that are not in the weight's form yet.
void Linear(const Exec& exec, MatrixView<const float> x, const Weight& w, MatrixView<float> out);

}  // namespace godwit::ops
