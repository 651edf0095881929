// Four vectors of words, transposed within each 16 bytes. Include after one of vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

// Four vectors; as an array GCC 12 would keep them in memory.
struct FourVecs {
  Vec a, b, c, d;
};

// Word i of vector k, within each 16 bytes, to word k of vector i.
GODWIT_INLINE FourVecs TransposeWords(const FourVecs& x) {
  const Vec ab_low = InterleaveLow<4>(x.a, x.b), ab_high = InterleaveHigh<4>(x.a, x.b);
  const Vec cd_low = InterleaveLow<4>(x.c, x.d), cd_high = InterleaveHigh<4>(x.c, x.d);
  return {InterleaveLow<8>(ab_low, cd_low), InterleaveHigh<8>(ab_low, cd_low),
          InterleaveLow<8>(ab_high, cd_high), InterleaveHigh<8>(ab_high, cd_high)};
}

}  // namespace
}  // namespace godwit::kernels
