// Rows that a checkpoint holds packed as grouped weights: the same numbers in the layout of the
// kernels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model_tensors.h"
#include "ops/pack_weight.h"
#include "weights/packed_rows.h"

namespace godwit {

// The format that holds the rows of all parts as they are stored; nullopt if they are not packed,
// or their orders of inputs differ.
std::optional<GroupFormat> FormatOfPacked(const LinearTensors& linear);

// All packed parts.
std::vector<const PackedTensors*> PackedPartsOf(const ModelTensors& tensors);

// The tensors that do not come into memory as they are stored, each in words; empty: all do.
std::vector<std::string> RoundingsOf(const ModelTensors& tensors);

// Reads row `row` in that format (ops::PackGroups has the factor), from the input first_input on,
// where a group begins. Scales that F16 does not hold
// are rounded, by 1/2048 at most, and levels that are no integers to 8-bit ones. Throws
// Error(kUnsupported) that names the scales where those of a row are too far apart for that.
void ReadPacked(const PackedTensors& tensors, const PackedRows& rows, int64_t row,
                int64_t first_input, const GroupFormat& format, ops::GroupedRow& to, float& factor);

}  // namespace godwit
