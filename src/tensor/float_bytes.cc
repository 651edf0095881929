#include "tensor/float_bytes.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>

namespace godwit {
namespace {

template <typename Half>
void ReadHalves(const std::byte* bytes, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    Half half;
    std::memcpy(&half, bytes + i * sizeof(Half), sizeof(Half));
    out[i] = ToFloat(half);
  }
}

template <typename Half>
void WriteHalves(std::span<const float> values, Half (*convert)(float), std::byte* bytes) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Half half = convert(values[i]);
    std::memcpy(bytes + i * sizeof(Half), &half, sizeof(Half));
  }
}

// Whether an element is NaN. T: the signed integer of an element's size. As integers, magnitudes
// keep their order, with NaN behind infinity, so that vectors can keep the largest of many.
template <typename T>
bool HasNan(const std::byte* bytes, int64_t n, T infinity) {
  T largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    T bits;
    std::memcpy(&bits, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    largest = std::max(largest, static_cast<T>(bits & std::numeric_limits<T>::max()));
  }
  return largest > infinity;
}

}  // namespace

void ReadFloats(DType dtype, const std::byte* bytes, std::span<float> out) {
  if (out.empty()) return;  // memcpy must not get its null pointer
  switch (dtype) {
    case DType::kF16:
      return ReadHalves<F16>(bytes, out);
    case DType::kBF16:
      return ReadHalves<BF16>(bytes, out);
    default:
      assert(dtype == DType::kF32);
      std::memcpy(out.data(), bytes, out.size_bytes());
  }
}

void WriteFloats(std::span<const float> values, DType dtype, std::byte* bytes) {
  if (values.empty()) return;
  switch (dtype) {
    case DType::kF16:
      return WriteHalves<F16>(values, ToF16, bytes);
    case DType::kBF16:
      return WriteHalves<BF16>(values, ToBF16, bytes);
    default:
      assert(dtype == DType::kF32);
      std::memcpy(bytes, values.data(), values.size_bytes());
  }
}

bool HasNan(DType dtype, const std::byte* bytes, int64_t n) {
  switch (dtype) {
    case DType::kF16:
      return HasNan<int16_t>(bytes, n, 0x7c00);
    case DType::kBF16:
      return HasNan<int16_t>(bytes, n, 0x7f80);
    case DType::kI8:
      return false;
    default:
      return HasNan<int32_t>(bytes, n, 0x7f800000);
  }
}

}  // namespace godwit
