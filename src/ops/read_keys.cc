#include "ops/read_keys.h"

#include "kernels/kernel_table.h"
#include "ops/widen_tile.h"

namespace godwit::ops {
namespace {

using kernels::kTileTokens;

float ToFloat(float x) { return x; }
using godwit::ToFloat;

template <int64_t kDepth, class T>
void Read(const std::byte* tile, int64_t head_dim, float* keys, int64_t stride) {
  const T* const stored = reinterpret_cast<const T*>(tile);
  for (int64_t d = 0; d < head_dim; ++d) {
    const T* const from = stored + kernels::KeyAt(kDepth, d, 0);
    for (int64_t j = 0; j < kTileTokens; ++j) {
      keys[d * stride + j] = ToFloat(from[j * kDepth]);
    }
  }
}

template <int64_t kDepth, class T>
void ReadTokens(const std::byte* tile, int64_t head_dim, float* values, int64_t stride) {
  const T* const stored = reinterpret_cast<const T*>(tile);
  for (int64_t d = 0; d < head_dim; ++d) {
    for (int64_t j = 0; j < kTileTokens; ++j) {
      values[d * stride + j] = ToFloat(stored[kernels::ValueAt(kDepth, head_dim, j, d)]);
    }
  }
}

// The integer of the code of number i of `count`.
int FromNibble(const std::byte* tile, int64_t count, int64_t i) {
  const kernels::NibblePlace place = kernels::NibbleAt(count, i);
  return kernels::kNibbleLevels[std::to_integer<size_t>(tile[place.byte]) >> place.shift & 15];
}

// integer_at(d, j): dimension d of token j, in units of scales[j].
void ReadIntegers(const auto& integer_at, const float* scales, int64_t head_dim, float* numbers,
                  int64_t stride) {
  for (int64_t d = 0; d < head_dim; ++d) {
    for (int64_t j = 0; j < kTileTokens; ++j) {
      numbers[d * stride + j] = static_cast<float>(integer_at(d, j)) * scales[j];
    }
  }
}

// Turns H (k - centre) of kTileTokens keys, or H v, back into keys or values [head_dim, stride].
void RotateBack(const BF16* centre, int64_t head_dim, float* keys, int64_t stride) {
  const int64_t block = kernels::HadamardBlock(head_dim);
  for (int64_t step = 1; step < block; step *= 2) {
    for (int64_t d = 0; d < head_dim; ++d) {
      if (d / step % 2 != 0) continue;
      float *const low = keys + d * stride, *const high = keys + (d + step) * stride;
      for (int64_t j = 0; j < kTileTokens; ++j) {
        const float sum = low[j] + high[j];
        high[j] = low[j] - high[j];
        low[j] = sum;
      }
    }
  }
  const float factor = kernels::HadamardFactor(block);
  for (int64_t d = 0; d < head_dim; ++d) {
    const float added = centre == nullptr ? 0 : godwit::ToFloat(centre[d]);
    for (int64_t j = 0; j < kTileTokens; ++j) {
      keys[d * stride + j] = keys[d * stride + j] * factor + added;
    }
  }
}

}  // namespace

void ReadKeys(const KvView& kv, int64_t head_dim, int64_t head, int64_t tile, float* keys,
              int64_t stride) {
  const std::byte* const stored = kv.Keys(head, tile);
  switch (kv.dtype) {
    case DType::kF16:
      return Read<kernels::KvDepth(DType::kF16), F16>(stored, head_dim, keys, stride);
    case DType::kBF16:
      return Read<kernels::KvDepth(DType::kBF16), BF16>(stored, head_dim, keys, stride);
    case DType::kI8:
      ReadIntegers(
          [&, count = WidenedKeyBytes(head_dim)](int64_t d, int64_t j) {
            const int64_t at = kernels::KeyAt(kernels::kQuad, d, j);
            return kv.narrow_keys ? FromNibble(stored, count, at)
                                  : std::to_integer<int>(stored[at]) - 128;
          },
          kv.Scales(head, tile), head_dim, keys, stride);
      if (kv.hadamard) RotateBack(kv.Centre(head, tile), head_dim, keys, stride);
      return;
    default:
      return Read<kernels::KvDepth(DType::kF32), float>(stored, head_dim, keys, stride);
  }
}

void ReadValues(const KvView& kv, int64_t head_dim, int64_t head, int64_t tile, float* values,
                int64_t stride) {
  const std::byte* const stored = kv.Values(head, tile);
  switch (kv.dtype) {
    case DType::kF16:
      return ReadTokens<kernels::KvDepth(DType::kF16), F16>(stored, head_dim, values, stride);
    case DType::kBF16:
      return ReadTokens<kernels::KvDepth(DType::kBF16), BF16>(stored, head_dim, values, stride);
    case DType::kI8: {
      const float* const scales = kv.Scales(head, tile) + kTileTokens;
      ReadIntegers(
          [&, count = WidenedValueBytes(head_dim)](int64_t d, int64_t j) -> int {
            const int64_t at = kernels::ValueAt(kernels::kQuad, head_dim, j, d);
            return kv.narrow_values ? FromNibble(stored, count, at)
                                    : static_cast<int8_t>(stored[at]);
          },
          scales, head_dim, values, stride);
      if (kv.narrow_values) RotateBack(nullptr, head_dim, values, stride);
      return;
    }
    default:
      return ReadTokens<kernels::KvDepth(DType::kF32), float>(stored, head_dim, values, stride);
  }
}

}  // namespace godwit::ops
