// The vector vocabulary of AVX-512 (F, BW, DQ, VL): 16 floats.
//
// generic/*-inl.h and gemm/*-inl.h are written over the names of this header; vec/avx2.h has the
// same names. Everything stands in an anonymous namespace, and neither header includes code of the
// standard library. A function that two translation units share must not be compiled for AVX-512:
// the linker would hand it to processors that lack it.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/vec/words.h"

#define GODWIT_INLINE inline __attribute__((always_inline))
#define GODWIT_VECTOR_REGISTER "v"

namespace godwit::kernels {
namespace {

using Vec = __m512;
using Mask = __mmask16;  // one bit per lane

constexpr int64_t kLanes = 16;
// Registers: 32. Vectors side by side in a register tile of several rows (6 x 4 accumulators).
constexpr int kTileVecs = 4;

GODWIT_INLINE Vec Zero() { return _mm512_setzero_ps(); }
GODWIT_INLINE Vec Set1(float x) { return _mm512_set1_ps(x); }
GODWIT_INLINE float First(Vec x) { return _mm512_cvtss_f32(x); }

// Lanes [begin, end); the bounds may lie outside the vector.
GODWIT_INLINE Mask LanesBetween(int64_t begin, int64_t end) {
  const int64_t low = begin < 0 ? 0 : begin > kLanes ? kLanes : begin;
  const int64_t high = end < low ? low : end > kLanes ? kLanes : end;
  return static_cast<Mask>((uint32_t{1} << high) - (uint32_t{1} << low));
}

GODWIT_INLINE Vec Select(Mask mask, Vec yes, Vec no) { return _mm512_mask_blend_ps(mask, no, yes); }
GODWIT_INLINE Mask IsNegative(Vec x) { return _mm512_cmp_ps_mask(x, Zero(), _CMP_LT_OQ); }
GODWIT_INLINE bool AnyPositive(Vec x) { return _mm512_cmp_ps_mask(x, Zero(), _CMP_GT_OQ) != 0; }

// Loads widen to f32; LoadFirst reads n < kLanes elements and zeroes the other lanes.
GODWIT_INLINE Vec Load(const float* p) { return _mm512_loadu_ps(p); }
GODWIT_INLINE Vec LoadFirst(const float* p, int64_t n) {
  return _mm512_maskz_loadu_ps(LanesBetween(0, n), p);
}
GODWIT_INLINE Vec Widen(__m256i bf16) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
}
GODWIT_INLINE Vec Load(const BF16* p) {
  return Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
GODWIT_INLINE Vec LoadFirst(const BF16* p, int64_t n) {
  return Widen(_mm256_maskz_loadu_epi16(LanesBetween(0, n), p));
}
GODWIT_INLINE Vec Load(const F16* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
GODWIT_INLINE Vec LoadFirst(const F16* p, int64_t n) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(LanesBetween(0, n), p));
}

// Pairs of neighbouring bf16, kLanes of them: the even and the odd halves as f32.
GODWIT_INLINE Vec EvenHalf(Vec pairs) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pairs), 16));
}
GODWIT_INLINE Vec OddHalf(Vec pairs) {
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(pairs), mask));
}

// Exact numbers of bf16, kLanes of each half, to pairs.
GODWIT_INLINE void StorePairs(BF16* p, Vec even, Vec odd) {
  const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(even), 16);
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  // low | (odd & high): the compiler's own choice is two instructions.
  _mm512_storeu_si512(p, _mm512_ternarylogic_epi32(low, _mm512_castps_si512(odd), high, 0xf8));
}

// Stores to BF16 and F16 round as tensor/dtype.h does.
GODWIT_INLINE void Store(float* p, Vec x) { _mm512_storeu_ps(p, x); }
GODWIT_INLINE void StoreFirst(float* p, Vec x, int64_t n) {
  _mm512_mask_storeu_ps(p, LanesBetween(0, n), x);
}
// Past the caches, which keep what they have; p is 64-byte aligned. Other threads see such stores
// behind FenceStores().
GODWIT_INLINE void StorePastCaches(float* p, Vec x) { _mm512_stream_ps(p, x); }
GODWIT_INLINE void FenceStores() { _mm_sfence(); }
GODWIT_INLINE __m256i NarrowToBF16(Vec x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const Mask nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet));
}
GODWIT_INLINE Vec RoundToBF16(Vec x) { return Widen(NarrowToBF16(x)); }
GODWIT_INLINE __m256i NarrowToF16(Vec x) {
  return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
GODWIT_INLINE void Store(BF16* p, Vec x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), NarrowToBF16(x));
}
GODWIT_INLINE void StoreFirst(BF16* p, Vec x, int64_t n) {
  _mm256_mask_storeu_epi16(p, LanesBetween(0, n), NarrowToBF16(x));
}
GODWIT_INLINE void Store(F16* p, Vec x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), NarrowToF16(x));
}
GODWIT_INLINE void StoreFirst(F16* p, Vec x, int64_t n) {
  _mm256_mask_storeu_epi16(p, LanesBetween(0, n), NarrowToF16(x));
}

GODWIT_INLINE Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
GODWIT_INLINE Vec Sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
GODWIT_INLINE Vec Mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
GODWIT_INLINE Vec Div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
GODWIT_INLINE Vec Sqrt(Vec x) { return _mm512_sqrt_ps(x); }
GODWIT_INLINE Vec Abs(Vec x) { return _mm512_abs_ps(x); }
GODWIT_INLINE Vec MulAdd(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }      // a * b + c
GODWIT_INLINE Vec MulSub(Vec a, Vec b, Vec c) { return _mm512_fmsub_ps(a, b, c); }      // a * b - c
GODWIT_INLINE Vec NegMulAdd(Vec a, Vec b, Vec c) { return _mm512_fnmadd_ps(a, b, c); }  // c - a * b
// sum + a * b, in the register of the sum. Left to itself, GCC 12 lets products of bf16 halves take
// the place of their factors. It then runs out of registers. Five of the twelve sums of a tile went
// through memory, at 0.7 of the speed.
GODWIT_INLINE Vec AddProduct(Vec a, Vec b, Vec sum) {
  __asm__("vfmadd231ps %1, %2, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}

// The second operand where either is NaN.
GODWIT_INLINE Vec Max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
GODWIT_INLINE Vec Min(Vec a, Vec b) { return _mm512_min_ps(a, b); }

// Round to the nearest integer, ties to even.
GODWIT_INLINE Vec Round(Vec x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// x * 2^n for integers n in [-252, 252], rounded once.
GODWIT_INLINE Vec ScaleByPowerOf2(Vec x, Vec n) { return _mm512_scalef_ps(x, n); }

// x - floor(x), but 0 of an infinity.
GODWIT_INLINE Vec Fraction(Vec x) {
  return _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
// x * 2^floor(n) for x in [1, 2]; of n below -126 that or zero.
GODWIT_INLINE Vec ScaleByFloor(Vec x, Vec n) { return _mm512_scalef_ps(x, n); }

// Integers in the bits of a vector: kLanes int32, or twice as many int16, or four times the bytes.
GODWIT_INLINE Vec AddInts(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
GODWIT_INLINE Vec Set1Ints(int32_t x) { return _mm512_castsi512_ps(_mm512_set1_epi32(x)); }
GODWIT_INLINE Vec AddToInts(Vec a, int32_t b) { return AddInts(a, Set1Ints(b)); }
GODWIT_INLINE Vec IntsToFloats(Vec ints) { return _mm512_cvtepi32_ps(_mm512_castps_si512(ints)); }
// To the nearest int32, ties to even.
GODWIT_INLINE Vec FloatsToInts(Vec x) { return _mm512_castsi512_ps(_mm512_cvtps_epi32(x)); }
// Every second of unsigned bytes, as int16.
GODWIT_INLINE Vec EvenBytes(Vec bytes) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(bytes), _mm512_set1_epi16(0xff)));
}
GODWIT_INLINE Vec OddBytes(Vec bytes) {
  return _mm512_castsi512_ps(_mm512_srli_epi16(_mm512_castps_si512(bytes), 8));
}
// The even ones of signed bytes, as int16, and the odd ones.
GODWIT_INLINE Vec EvenBytesSigned(Vec bytes) {
  const auto even = _mm512_slli_epi16(_mm512_castps_si512(bytes), 8);
  return _mm512_castsi512_ps(_mm512_srai_epi16(even, 8));
}
GODWIT_INLINE Vec OddBytesSigned(Vec bytes) {
  return _mm512_castsi512_ps(_mm512_srai_epi16(_mm512_castps_si512(bytes), 8));
}
// The products of int16, neighbours added, as int32.
GODWIT_INLINE Vec PairProducts(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_madd_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
// sum + the products of int16, neighbours added, as int32 that wrap around. Left to itself, GCC
// adds the products of several calls to each other first and keeps them in memory until it does.
GODWIT_INLINE Vec AddPairProducts(Vec a, Vec b, Vec sum) {
  const __m512i pairs = _mm512_madd_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b));
  __asm__("vpaddd %1, %0, %0" : "+v"(sum) : "v"(pairs));
  return sum;
}
// sum + the products of unsigned bytes of at most 127 and signed ones, the four of a quad added.
GODWIT_INLINE Vec AddSmallQuadProducts(Vec small, Vec bytes, Vec sum) {
  const __m512i pairs =
      _mm512_maddubs_epi16(_mm512_castps_si512(small), _mm512_castps_si512(bytes));
  return AddPairProducts(_mm512_castsi512_ps(pairs), _mm512_castsi512_ps(_mm512_set1_epi16(1)),
                         sum);
}
// The products of unsigned bytes and signed ones, neighbours added, as int16 that must hold them.
GODWIT_INLINE Vec ByteProducts(Vec unsigned_bytes, Vec signed_bytes) {
  return _mm512_castsi512_ps(
      _mm512_maddubs_epi16(_mm512_castps_si512(unsigned_bytes), _mm512_castps_si512(signed_bytes)));
}
// sum + those, as int16 that wrap around; see AddPairProducts.
GODWIT_INLINE Vec AddByteProducts(Vec unsigned_bytes, Vec signed_bytes, Vec sum) {
  const Vec products = ByteProducts(unsigned_bytes, signed_bytes);
  __asm__("vpaddw %1, %0, %0" : "+v"(sum) : "v"(products));
  return sum;
}
// sum + the products of unsigned and signed quads, without saturation: in files with VNNI alone.
// With the intrinsic, GCC 12 keeps sums that were loaded in memory.
GODWIT_INLINE Vec AddQuadProducts(Vec unsigned_quads, Vec signed_quads, Vec sum) {
  __asm__("vpdpbusd %1, %2, %0" : "+v"(sum) : "v"(signed_quads), "v"(unsigned_quads));
  return sum;
}
GODWIT_INLINE Vec Set1Words(int16_t x) { return _mm512_castsi512_ps(_mm512_set1_epi16(x)); }
// Byte k of every quad: of signed bytes, or with kExcess of unsigned ones, less 128. As the last
// bits of 2^23, since shifts and conversions share one of the two ports that take vectors of 512
// bits.
template <int k, bool kExcess>
GODWIT_INLINE Vec ByteOfQuads(Vec quads) {
  constexpr float kUnit = 0x1p23f;
  const __m512i shifted = _mm512_srli_epi32(_mm512_castps_si512(quads), 8 * k);
  const __m512i code = _mm512_set1_epi32(
      static_cast<int>(__builtin_bit_cast(uint32_t, kUnit) | (kExcess ? 0 : 0x80)));
  const __m512i sum =  // (shifted & 0xff) ^ code
      _mm512_ternarylogic_epi32(shifted, _mm512_set1_epi32(0xff), code, 0x6a);
  return Sub(_mm512_castsi512_ps(sum), Set1(kUnit + 128));
}
// 4 * kLanes bytes in quads (a, b, c, d) to the int16 (a, c, b, d), as Even- and OddBytes split
// them.
GODWIT_INLINE void WidenQuads(const int8_t* p, int16_t* out) {
  const __m256i swap = _mm256_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15, 0, 2,
                                        1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  for (int half = 0; half < 2; ++half) {
    const __m256i quads = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p) + half);
    _mm512_storeu_si512(out + half * 2 * kLanes,
                        _mm512_cvtepi8_epi16(_mm256_shuffle_epi8(quads, swap)));
  }
}

// The halves of bytes; the byte of a table of 16, one for each 16 bytes of the vector, that a half
// names.
GODWIT_INLINE Vec LowNibbles(Vec bytes) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(bytes), _mm512_set1_epi8(15)));
}
GODWIT_INLINE Vec HighNibbles(Vec bytes) {
  return LowNibbles(_mm512_castsi512_ps(_mm512_srli_epi16(_mm512_castps_si512(bytes), 4)));
}
// The bytes of `low` with those bits of kMask that `high` has so many places further right, if
// kLeft is below 0 further left.
template <int kLeft, int kMask>
GODWIT_INLINE Vec WithBits(Vec low, Vec high) {
  const __m512i bits = _mm512_castps_si512(high);
  const __m512i moved = kLeft < 0 ? _mm512_srli_epi32(bits, kLeft < 0 ? -kLeft : 0)
                                  : _mm512_slli_epi32(bits, kLeft < 0 ? 0 : kLeft);
  return _mm512_castsi512_ps(
      _mm512_or_si512(_mm512_castps_si512(low), _mm512_and_si512(moved, _mm512_set1_epi8(kMask))));
}
GODWIT_INLINE Vec LookUp(Vec tables, Vec nibbles) {
  return _mm512_castsi512_ps(
      _mm512_shuffle_epi8(_mm512_castps_si512(tables), _mm512_castps_si512(nibbles)));
}
GODWIT_INLINE Vec AddBytes(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_add_epi8(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
// Unsigned bytes less 128, as signed ones.
GODWIT_INLINE Vec LessExcess(Vec bytes) {
  return AddBytes(bytes, Set1Ints(static_cast<int32_t>(0x80808080u)));
}
GODWIT_INLINE Vec AddWords(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_add_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
GODWIT_INLINE Vec SubWords(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_sub_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
// The sums of even bytes, if below 2^16, from sums of words and of their odd bytes.
GODWIT_INLINE Vec EvenSums(Vec words, Vec odd) {
  return _mm512_castsi512_ps(
      _mm512_sub_epi16(_mm512_castps_si512(words), _mm512_slli_epi16(_mm512_castps_si512(odd), 8)));
}
GODWIT_INLINE Vec MaxWords(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_max_epu16(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
GODWIT_INLINE Vec MaxInts(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
GODWIT_INLINE int32_t ReduceMaxWords(Vec words) {
  const __m512i x = _mm512_castps_si512(words);
  return LargestWord(_mm256_max_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1)));
}
GODWIT_INLINE int32_t ReduceMaxInts(Vec ints) {
  const __m512i x = _mm512_castps_si512(ints);
  return LargestInt(_mm256_max_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1)));
}

// 16 bytes, over and over.
GODWIT_INLINE Vec Repeat16(const uint8_t* p) {
  return _mm512_castsi512_ps(
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
// Within each 16 bytes: byte k of four quads, for every k in turn.
GODWIT_INLINE Vec TransposeBytes(Vec bytes) {
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_castsi512_ps(
      _mm512_shuffle_epi8(_mm512_castps_si512(bytes), _mm512_broadcast_i32x4(order)));
}

// Within each 16 bytes: the elements, of kBytes each, of the lower or upper halves of two vectors,
// in turn.
template <int kBytes>
GODWIT_INLINE Vec InterleaveLow(Vec a, Vec b) {
  const auto x = _mm512_castps_si512(a), y = _mm512_castps_si512(b);
  if constexpr (kBytes == 1) return _mm512_castsi512_ps(_mm512_unpacklo_epi8(x, y));
  if constexpr (kBytes == 2) return _mm512_castsi512_ps(_mm512_unpacklo_epi16(x, y));
  if constexpr (kBytes == 4) return _mm512_castsi512_ps(_mm512_unpacklo_epi32(x, y));
  if constexpr (kBytes == 8) return _mm512_castsi512_ps(_mm512_unpacklo_epi64(x, y));
}
template <int kBytes>
GODWIT_INLINE Vec InterleaveHigh(Vec a, Vec b) {
  const auto x = _mm512_castps_si512(a), y = _mm512_castps_si512(b);
  if constexpr (kBytes == 1) return _mm512_castsi512_ps(_mm512_unpackhi_epi8(x, y));
  if constexpr (kBytes == 2) return _mm512_castsi512_ps(_mm512_unpackhi_epi16(x, y));
  if constexpr (kBytes == 4) return _mm512_castsi512_ps(_mm512_unpackhi_epi32(x, y));
  if constexpr (kBytes == 8) return _mm512_castsi512_ps(_mm512_unpackhi_epi64(x, y));
}
// Each 16 bytes to a place of their own, `stride` bytes from one to the next.
GODWIT_INLINE void StoreSixteens(char* p, int64_t stride, Vec x) {
  _mm_storeu_ps(reinterpret_cast<float*>(p), _mm512_castps512_ps128(x));
  _mm_storeu_ps(reinterpret_cast<float*>(p + stride), _mm512_extractf32x4_ps(x, 1));
  _mm_storeu_ps(reinterpret_cast<float*>(p + 2 * stride), _mm512_extractf32x4_ps(x, 2));
  _mm_storeu_ps(reinterpret_cast<float*>(p + 3 * stride), _mm512_extractf32x4_ps(x, 3));
}

// int8 from int32 in [-128, 127]; widened to f32 by loads.
GODWIT_INLINE void StoreBytes(int8_t* p, Vec ints) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_castps_si512(ints)));
}
GODWIT_INLINE void StoreFirstBytes(int8_t* p, Vec ints, int64_t n) {
  _mm_mask_storeu_epi8(p, LanesBetween(0, n), _mm512_cvtepi32_epi8(_mm512_castps_si512(ints)));
}
GODWIT_INLINE Vec Load(const int8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
GODWIT_INLINE Vec Load(const uint8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
// 2 * kLanes unsigned bytes as int16.
GODWIT_INLINE Vec LoadWords(const int8_t* p) {
  return _mm512_castsi512_ps(
      _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
}

// The larger of numbers that are not negative, and NaN where either is.
GODWIT_INLINE Vec MaxOrNan(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
GODWIT_INLINE float ReduceMaxOrNan(Vec x) {
  const uint32_t bits = _mm512_reduce_max_epu32(_mm512_castps_si512(x));
  float largest;
  __builtin_memcpy(&largest, &bits, sizeof(largest));
  return largest;
}

// Reductions fold halves, in an order that is written here: the compilers' own differ.
GODWIT_INLINE float ReduceAdd(Vec x) {
  const __m256 y = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m128 z = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
  const __m128 w = _mm_add_ps(z, _mm_movehl_ps(z, z));
  return _mm_cvtss_f32(_mm_add_ss(w, _mm_shuffle_ps(w, w, 1)));
}
GODWIT_INLINE float ReduceMax(Vec x) {
  const __m256 y = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m128 z = _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
  const __m128 w = _mm_max_ps(z, _mm_movehl_ps(z, z));
  return _mm_cvtss_f32(_mm_max_ss(w, _mm_shuffle_ps(w, w, 1)));
}

}  // namespace
}  // namespace godwit::kernels
