// Rows of weights as 4-bit integers in groups, for --weights int4.
#pragma once

#include "kernels/group_packing.h"

namespace godwit::ops {

using kernels::GroupedRow;

// The format that QuantizeGroups makes: 4.5 bits for a weight.
inline constexpr GroupFormat kQuantizedGroups = {
    .codes = Codes::k4, .scaling = Scaling::kCentred, .group = 32};

// Quantizes x [row.codes.size()], which is about factor * scale of its group * (code - 8). Among
// several scales, each group gets that of the least squared error, rounded to F16. `factor` is the
// power of two that brings the largest scale of the row between 2^14 and 2^15 before that. If x is
// not finite, factor is NaN. The same bits on every machine.
void QuantizeGroups(const float* x, GroupedRow& row, float& factor);

}  // namespace godwit::ops
