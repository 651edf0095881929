// LLM.int8() (Dettmers et al. 2022): the few large elements of an input are multiplied in float.
// The scale of the others then need not cover them.
//
// Every token has outliers of its own. bitsandbytes takes a column out of all rows that it computes
// together if it is large in any of them. The values of a token would then depend on the rows
// beside it. For a single row, as in decoding, the two are the same.
#pragma once

#include <cstdint>
#include <span>

#include "ops/quantize.h"
#include "tensor/weight.h"

namespace godwit::ops {

struct Outlier {
  int32_t column;
  float value;
};

// Quantizes as QuantizeRow, but elements of magnitude `threshold` or more become zeros and go to
// `outliers` [n], in the order of columns; *count: their number. A row that is not finite has none.
RowQuantization QuantizeRowWithoutOutliers(const kernels::KernelTable& kernels, const float* x,
                                           float threshold, int64_t n, int8_t* out,
                                           Outlier* outliers, int64_t* count) noexcept;

// Adds to a row's outputs in panels [panel_begin, panel_end) the sum over its outliers, in their
// order, of value * (scale * integer) of an int8 weight. out: [w.outputs]
void AddOutliers(std::span<const Outlier> outliers, const Weight& w, int64_t panel_begin,
                 int64_t panel_end, float* out) noexcept;

}  // namespace godwit::ops
