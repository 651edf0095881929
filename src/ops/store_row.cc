#include "ops/store_row.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "ops/quantize.h"
#include "ops/widen_tile.h"

namespace godwit::ops {
namespace {

// Writes a key into its slot of a tile, kDepth numbers side by side, as many as a product takes.
template <int64_t kDepth, typename T>
void PlaceKey(const T* k, int64_t head_dim, int64_t slot, T* keys) {
  for (int64_t d = 0; d < head_dim; d += kDepth) {
    std::memcpy(keys + kernels::KeyAt(kDepth, d, slot), k + d, kDepth * sizeof(T));
  }
}

// Writes a value among those of kDepth tokens, as many as a product takes, a word at a time.
template <int64_t kDepth, typename T>
void PlaceValue(const T* v, int64_t head_dim, int64_t slot, T* values) {
  T* const tokens = values + kernels::ValueAt(kDepth, head_dim, slot / kDepth * kDepth, 0);
  if constexpr (kDepth == 1) {
    std::copy_n(v, head_dim, tokens);
  } else {
    static_assert(kDepth * sizeof(T) == sizeof(uint32_t));
    using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>;
    const auto shift = static_cast<uint32_t>(slot % kDepth * 8 * static_cast<int64_t>(sizeof(T)));
    const uint32_t others = ~(uint32_t{std::numeric_limits<Bits>::max()} << shift);
    auto* const words = reinterpret_cast<uint32_t*>(tokens);
    const auto* const bits = reinterpret_cast<const Bits*>(v);
    for (int64_t d = 0; d < head_dim; ++d) {
      words[d] = (words[d] & others) | uint32_t{bits[d]} << shift;
    }
  }
}

template <int64_t kDepth, typename T>
void StoreNumbers(void (*convert)(const float*, int64_t, T*) noexcept, const float* k,
                  const float* v, int64_t head_dim, int64_t slot, std::byte* keys,
                  std::byte* values) {
  std::array<T, kMaxHeadDim + kDepth> narrow;
  convert(k, head_dim, narrow.data());
  std::fill_n(narrow.begin() + head_dim, kDepth, T{});  // zeros behind the key
  PlaceKey<kDepth>(narrow.data(), head_dim, slot, reinterpret_cast<T*>(keys));
  if (v == nullptr) return;
  convert(v, head_dim, narrow.data());
  PlaceValue<kDepth>(narrow.data(), head_dim, slot, reinterpret_cast<T*>(values));
}

// Writes 4-bit codes into the places of numbers At(d) of `count`.
template <typename At>
void PlaceNibbles(const uint8_t* codes, int64_t head_dim, int64_t count, At at, std::byte* tile) {
  for (int64_t d = 0; d < head_dim; ++d) {
    const kernels::NibblePlace place = kernels::NibbleAt(count, at(d));
    const int others = std::to_integer<int>(tile[place.byte]) & (0xf0 >> place.shift);
    tile[place.byte] = static_cast<std::byte>(others | codes[d] << place.shift);
  }
}

// Writes a key as int8 or 4-bit codes, and returns its scale.
float PlaceIntegerKey(const kernels::KernelTable& kernels, const KvLayout& layout, const float* k,
                      int64_t slot, std::byte* keys) {
  const int64_t head_dim = layout.head_dim;
  if (kernels::HasNarrowKeys(layout.dtype)) {
    std::array<uint8_t, kMaxHeadDim> codes;
    const float scale = QuantizeToNibbles(kernels, k, head_dim, codes.data());
    PlaceNibbles(
        codes.data(), head_dim, WidenedKeyBytes(head_dim),
        [&](int64_t d) { return kernels::KeyAt(kernels::kQuad, d, slot); }, keys);
    return scale;
  }
  std::array<int8_t, kMaxHeadDim + kernels::kQuad> narrow;
  const float scale = QuantizeRow(kernels, k, head_dim, narrow.data()).scale;
  std::fill_n(narrow.begin() + head_dim, kernels::kQuad, int8_t{0});
  // Keys lie as k + 128, unsigned.
  for (int64_t d = 0; d < head_dim + kernels::kQuad; ++d) narrow[d] ^= -128;
  PlaceKey<kernels::kQuad>(narrow.data(), head_dim, slot, reinterpret_cast<int8_t*>(keys));
  return scale;
}

// Writes a value in the same way. rotated: memory for one value.
float PlaceIntegerValue(const kernels::KernelTable& kernels, const KvLayout& layout, const float* v,
                        float* rotated, int64_t slot, std::byte* values) {
  const int64_t head_dim = layout.head_dim;
  if (layout.rotated_values()) {
    std::array<uint8_t, kMaxHeadDim> codes;
    std::copy_n(v, head_dim, rotated);
    kernels.hadamard(head_dim, rotated);
    const float scale = QuantizeToNibbles(kernels, rotated, head_dim, codes.data());
    PlaceNibbles(
        codes.data(), head_dim, WidenedValueBytes(head_dim),
        [&](int64_t d) { return kernels::ValueAt(kernels::kQuad, head_dim, slot, d); }, values);
    return scale;
  }
  std::array<int8_t, kMaxHeadDim + kernels::kQuad> narrow;
  const float scale = QuantizeRow(kernels, v, head_dim, narrow.data()).scale;
  PlaceValue<kernels::kQuad>(narrow.data(), head_dim, slot, reinterpret_cast<int8_t*>(values));
  return scale;
}

void StoreIntegers(const kernels::KernelTable& kernels, const KvLayout& layout, const float* k,
                   const float* v, int64_t slot, std::byte* keys) {
  const int64_t head_dim = layout.head_dim;
  std::byte* const values = keys + layout.key_bytes();
  auto* const scales = reinterpret_cast<float*>(values + layout.value_bytes());
  std::array<float, kMaxHeadDim> rotated;
  std::copy_n(k, head_dim, rotated.begin());
  if (layout.centred) {
    const auto* const centre = reinterpret_cast<const BF16*>(keys + layout.centre_offset());
    for (size_t d = 0; d < static_cast<size_t>(head_dim); ++d) rotated[d] -= ToFloat(centre[d]);
  }
  if (layout.hadamard()) kernels.hadamard(head_dim, rotated.data());
  scales[slot] = PlaceIntegerKey(kernels, layout, rotated.data(), slot, keys);
  if (v == nullptr) return;
  scales[kTileTokens + slot] = PlaceIntegerValue(kernels, layout, v, rotated.data(), slot, values);
}

// Refuses numbers that f16 would turn into infinity.
void CheckRangeOfF16(const kernels::KernelTable& kernels, const char* what, int64_t layer,
                     const float* x, int64_t n) {
  constexpr float kFirstInfinite = 65520;
  const float largest = kernels.largest_magnitude(x, n);
  if (!(largest >= kFirstInfinite)) return;
  Throw(ErrorKind::kUnsupported,
        "a {} of layer {} has an element of magnitude {}, and an f16 KV cache holds up to 65504: "
        "one of bf16 or f32 holds it",
        what, layer, largest);
}

void CopyFloats(const float* x, int64_t n, float* out) noexcept { std::copy_n(x, n, out); }

// The memory of a head's part of a page.
std::byte* Place(const KvLayout& layout, const KvView& to, int64_t head, int64_t tile) {
  return HostPointer(to.Page(tile)) + head * layout.head_bytes();
}

}  // namespace

void StoreCentre(const kernels::KernelTable& kernels, const KvLayout& layout, const KvView& to,
                 int64_t head, int64_t tile, std::span<const float> centre) {
  assert(layout.centred);
  auto* const out = reinterpret_cast<BF16*>(Place(layout, to, head, tile) + layout.centre_offset());
  std::fill_n(out, layout.head_dim, BF16{});
  kernels.f32_to_bf16(centre.data(), std::ssize(centre), out);
}

void StoreRow(const kernels::KernelTable& kernels, const KvLayout& layout, const KvView& to,
              int64_t layer, int64_t head, int64_t position, const float* k, const float* v) {
  assert((v == nullptr) == layout.values_in_keys);
  std::byte* const keys = Place(layout, to, head, position / kTileTokens);
  std::byte* const values = keys + layout.key_bytes();
  const int64_t slot = position % kTileTokens;
  switch (layout.dtype) {
    case DType::kF16:
      CheckRangeOfF16(kernels, "key", layer, k, layout.head_dim);
      if (v != nullptr) CheckRangeOfF16(kernels, "value", layer, v, layout.head_dim);
      StoreNumbers<1>(kernels.f32_to_f16, k, v, layout.head_dim, slot, keys, values);
      break;
    case DType::kBF16:
      StoreNumbers<2>(kernels.f32_to_bf16, k, v, layout.head_dim, slot, keys, values);
      break;
    case DType::kI8:
    case DType::kI8I4:
    case DType::kI4:
      StoreIntegers(kernels, layout, k, v, slot, keys);
      break;
    default:
      StoreNumbers<1>(CopyFloats, k, v, layout.head_dim, slot, keys, values);
  }
}

}  // namespace godwit::ops
