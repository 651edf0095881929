// Rows of a checkpoint's tensor as f32, however it is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weights/weight_source.h"

namespace godwit {

// F32, F16 or BF16, or rows of blocks.
bool HoldsFloats(const TensorInfo& tensor);

// Where row `row` of shape[0] begins. A vector's rows have one element each.
const std::byte* RowBytes(const TensorInfo& tensor, int64_t row);

// Reads a row, widened: out [elements of a row]. The tensor must hold floats, a vector no blocks.
void ReadRow(const TensorInfo& tensor, int64_t row, std::span<float> out);

// Reads all rows of a small tensor.
std::vector<float> ReadAllRows(const TensorInfo& tensor);

}  // namespace godwit
