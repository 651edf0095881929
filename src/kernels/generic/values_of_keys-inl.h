// Keys, which lie dimension by dimension, transposed into values, which lie token by token. Include
// after one of vec/*.h.
//
// Four vectors of four-byte words are transposed at once, within each 16 bytes. The result is 16
// bytes of each of their tokens. They then lie side by side (kernel_table.h, KvDepth) with those of
// as many others as a product adds up.
#pragma once

#include "kernels/generic/transpose_words-inl.h"

namespace godwit::kernels {
namespace {

// Numbers of kSize bytes, kDepth of them side by side.
template <int64_t kSize, int64_t kDepth>
struct KeyTransposer {
  static constexpr int64_t kSixteen = 16;             // bytes
  static constexpr int64_t kDims = kSixteen / kSize;  // that are transposed at once
  static constexpr int64_t kRows = kDims / kDepth;    // of the keys
  static constexpr int64_t kRowBytes = kTileTokens * kDepth * kSize;
  static constexpr int64_t kVecBytes = kLanes * int64_t{sizeof(float)};
  static constexpr int64_t kTokens = kVecBytes / (kDepth * kSize);  // of a vector

  const char* keys;  // of the first dimension
  char* values;
  int64_t rows;   // of keys that there are
  int64_t width;  // of the values, whole lanes

  GODWIT_INLINE Vec Row(int64_t row, int64_t token) const {
    if (row >= rows) return Zero();
    const Vec x =
        Load(reinterpret_cast<const float*>(keys + row * kRowBytes + token * kDepth * kSize));
    if constexpr (kSize == 1) return AddBytes(x, Set1Words(static_cast<int16_t>(0x8080)));
    return x;
  }
  GODWIT_INLINE FourVecs FourRows(int64_t row, int64_t token) const {
    return {Row(row, token), Row(row + 1, token), Row(row + 2, token), Row(row + 3, token)};
  }

  // Stores dimensions from d on of as many tokens as one step of a product adds up. The vector has
  // some of them in each 16 bytes: the first 16 have those of `token`, the next those `step` behind
  // it.
  GODWIT_INLINE void Put(int64_t token, int64_t step, int64_t d, Vec x) const {
    StoreSixteens(values + (token / kDepth * width + d) * kDepth * kSize,
                  step / kDepth * width * kDepth * kSize, x);
  }

  GODWIT_INLINE void Turn(int64_t token, int64_t d) const {
    const int64_t row = d / kDepth;
    if constexpr (kSize == 4) {
      const FourVecs x = TransposeWords(FourRows(row, token));
      Put(token, 4, d, x.a);
      Put(token + 1, 4, d, x.b);
      Put(token + 2, 4, d, x.c);
      Put(token + 3, 4, d, x.d);
    } else if constexpr (kDepth == 1) {
      // Neighbouring dimensions make a word.
      const FourVecs even = {Row(row, token), Row(row + 2, token), Row(row + 4, token),
                             Row(row + 6, token)};
      const FourVecs odd = {Row(row + 1, token), Row(row + 3, token), Row(row + 5, token),
                            Row(row + 7, token)};
      const FourVecs low =
          TransposeWords({InterleaveLow<2>(even.a, odd.a), InterleaveLow<2>(even.b, odd.b),
                          InterleaveLow<2>(even.c, odd.c), InterleaveLow<2>(even.d, odd.d)});
      const FourVecs high =
          TransposeWords({InterleaveHigh<2>(even.a, odd.a), InterleaveHigh<2>(even.b, odd.b),
                          InterleaveHigh<2>(even.c, odd.c), InterleaveHigh<2>(even.d, odd.d)});
      Put(token, 8, d, low.a);
      Put(token + 1, 8, d, low.b);
      Put(token + 2, 8, d, low.c);
      Put(token + 3, 8, d, low.d);
      Put(token + 4, 8, d, high.a);
      Put(token + 5, 8, d, high.b);
      Put(token + 6, 8, d, high.c);
      Put(token + 7, 8, d, high.d);
    } else if constexpr (kDepth == 2) {
      const FourVecs x = TransposeWords(FourRows(row, token));
      Put(token, 4, d, InterleaveLow<2>(x.a, x.b));
      Put(token, 4, d + 4, InterleaveHigh<2>(x.a, x.b));
      Put(token + 2, 4, d, InterleaveLow<2>(x.c, x.d));
      Put(token + 2, 4, d + 4, InterleaveHigh<2>(x.c, x.d));
    } else {
      const FourVecs x = TransposeWords(FourRows(row, token));
      const Vec ac_low = InterleaveLow<1>(x.a, x.c), bd_low = InterleaveLow<1>(x.b, x.d);
      const Vec ac_high = InterleaveHigh<1>(x.a, x.c), bd_high = InterleaveHigh<1>(x.b, x.d);
      Put(token, 4, d, InterleaveLow<1>(ac_low, bd_low));
      Put(token, 4, d + 4, InterleaveHigh<1>(ac_low, bd_low));
      Put(token, 4, d + 8, InterleaveLow<1>(ac_high, bd_high));
      Put(token, 4, d + 12, InterleaveHigh<1>(ac_high, bd_high));
    }
  }

  // Runs a few tokens at a time. The values of a token often lie a power of two behind those of the
  // token before. They would push each other out of the first-level cache.
  GODWIT_INLINE void Run() const {
    for (int64_t token = 0; token < kTileTokens; token += kTokens) {
      for (int64_t d = 0; d < width; d += kDims) Turn(token, d);
    }
  }
};

template <DType kType>
GODWIT_INLINE void TransposeKeys(const ValuesOfKeysArgs& args) {
  constexpr int64_t kSize = SizeOf(kType), kDepth = KvDepth(kType);
  using Transposer = KeyTransposer<kSize, kDepth>;
  static_assert(Transposer::kRows == 4 || Transposer::kRows == 8);
  const int64_t dim = args.head_dim - args.first;
  Transposer{.keys = static_cast<const char*>(args.k) + args.first / kDepth * Transposer::kRowBytes,
             .values = static_cast<char*>(args.v),
             .rows = (dim + kDepth - 1) / kDepth,
             .width = (dim + kLaneFloats - 1) / kLaneFloats * kLaneFloats}
      .Run();
}

void ValuesOfKeys(const ValuesOfKeysArgs& args) noexcept {
  switch (args.dtype) {
    case DType::kF16:
      return TransposeKeys<DType::kF16>(args);
    case DType::kBF16:
      return TransposeKeys<DType::kBF16>(args);
    case DType::kI8:
      return TransposeKeys<DType::kI8>(args);
    default:
      return TransposeKeys<DType::kF32>(args);
  }
}

}  // namespace
}  // namespace godwit::kernels
