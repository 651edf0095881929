#include "tensor/dtype.h"

namespace godwit {
namespace {

constexpr uint32_t kF32Infinity = 0x7f800000u;
constexpr uint32_t kF16Infinity = 0x7c00u;
constexpr uint32_t kF16Quiet = 0x0200u;
constexpr int kFractionShift = 23 - 10;  // f32 has 23 fraction bits, f16 has 10
constexpr uint32_t kBiasChange = (127u - 15u) << 23;

// Shifts right, rounding to nearest even. 0 < shift < 32.
constexpr uint32_t ShiftRounded(uint32_t value, int shift) {
  const uint32_t half = uint32_t{1} << (shift - 1);
  const uint32_t odd = (value >> shift) & 1u;
  return (value + half - 1u + odd) >> shift;
}

}  // namespace

float ToFloat(F16 x) {
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16;
  const uint32_t exponent = (x.bits >> 10) & 0x1fu;
  const uint32_t fraction = x.bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  if (exponent == 0x1f) {
    // A signalling NaN becomes quiet, as in the hardware conversion.
    const uint32_t quiet = fraction == 0 ? 0u : uint32_t{1} << 22;
    return std::bit_cast<float>(sign | kF32Infinity | quiet | (fraction << kFractionShift));
  }
  const uint32_t magnitude = uint32_t{x.bits & 0x7fffu} << kFractionShift;
  return std::bit_cast<float>(sign | (magnitude + kBiasChange));
}

F16 ToF16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > kF32Infinity) {
    half = kF16Infinity | kF16Quiet | ((magnitude >> kFractionShift) & 0x3ffu);
  } else if (magnitude >= std::bit_cast<uint32_t>(65520.0f)) {
    half = kF16Infinity;  // 65520 lies midway between the largest half and the next power of two
  } else if (magnitude >= std::bit_cast<uint32_t>(0x1p-14f)) {
    half = ShiftRounded(magnitude - kBiasChange, kFractionShift);
  } else if (magnitude >= std::bit_cast<uint32_t>(0x1p-25f)) {
    // The result is subnormal: a multiple of 2^-24. The rounding's carry may reach the smallest
    // normal, whose bits are the next integer.
    const int exponent = static_cast<int>(magnitude >> 23);
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    half = ShiftRounded(significand, 126 - exponent);
  }
  return {static_cast<uint16_t>(sign | half)};
}

}  // namespace godwit
