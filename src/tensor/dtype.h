// Element types of weights, activations and KV caches, and the scalar conversions between them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace godwit {

// kGrouped: codes of a few bits in groups that share a scale (tensor/group_format.h). Only packed
// weights are; there is no element of it.
// kI4, kI8I4: codes of 4 bits, two to a byte; int8 keys beside values of 4 bits. Only KV caches are
// (ops/kv_layout.h); there is no element of them either.
enum class DType : uint8_t { kF32, kF16, kBF16, kI8, kU8, kI32, kI64, kGrouped, kI4, kI8I4 };

constexpr size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI8:
    case DType::kU8:
      return 1;
    case DType::kI64:
      return 8;
    case DType::kGrouped:
    case DType::kI4:
    case DType::kI8I4:
      break;
  }
  return 0;
}

// As safetensors spells it: "F32", "BF16", ...
constexpr std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI8:
      return "I8";
    case DType::kU8:
      return "U8";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kGrouped:
      return "grouped";
    case DType::kI4:
      return "I4";
    case DType::kI8I4:
      return "I8I4";
  }
  return "?";
}

// The storage of a bfloat16 and of an IEEE half; arithmetic happens in float.
struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};
inline constexpr float kLargestF16 = 65504;  // that is finite

constexpr float ToFloat(BF16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Round to nearest even. A NaN keeps its sign and becomes quiet: rounding its payload could
// otherwise carry into an infinity.
constexpr BF16 ToBF16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

float ToFloat(F16 x);
F16 ToF16(float x);  // round to nearest even, overflow to infinity

}  // namespace godwit
