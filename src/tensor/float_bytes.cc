#include "tensor/float_bytes.h"

#include <cassert>
#include <cstdint>
#include <cstring>

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

}  // namespace

void ReadFloats(DType dtype, const std::byte* bytes, std::span<float> out) {
  if (out.empty()) return;  // whose null pointer memcpy must not see
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

}  // namespace godwit
