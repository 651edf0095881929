// Elements of a checkpoint's tensor as f32, and back. The bytes may lie at any alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace godwit {

// dtype: F32, F16 or BF16, of which `bytes` holds out.size() elements. Exact.
void ReadFloats(DType dtype, const std::byte* bytes, std::span<float> out);

// The same the other way, each rounded to the nearest, ties to even. A number beyond what F16 can
// hold becomes infinity.
void WriteFloats(std::span<const float> values, DType dtype, std::byte* bytes);

// Whether one of n elements is NaN, of a type that has them.
bool HasNan(DType dtype, const std::byte* bytes, int64_t n);

}  // namespace godwit
