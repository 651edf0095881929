// Rows of GGUF's blocks as grouped weights: the same numbers in the layout of the kernels.
#pragma once

#include <optional>

#include "model/model_tensors.h"
#include "ops/pack_weight.h"

namespace godwit {

// The format that holds the rows of all parts as they are stored; nullopt if they are no blocks, or
// have no common format. Types that differ but all have scales of scales (Q4_K beside Q6_K), or
// scales alone (Q4_0 beside Q8_0), share one of 8-bit codes.
std::optional<GroupFormat> FormatOfBlocks(const LinearTensors& linear);

// Reads row `row` of a part in that format (ops::PackGroups has the factor), from the input
// first_input on, where a block begins. Returns whether one of its scales or minimums is no number.
bool ReadBlocks(const TensorInfo& tensor, int64_t row, int64_t first_input,
                const GroupFormat& format, ops::GroupedRow& to, float& factor);

}  // namespace godwit
