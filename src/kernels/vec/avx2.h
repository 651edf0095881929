// The vector vocabulary of AVX2, FMA and F16C: 8 floats. See vec/avx512.h for the names and for
// why everything stands in an anonymous namespace.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/vec/words.h"

#define GODWIT_INLINE inline __attribute__((always_inline))
#define GODWIT_VECTOR_REGISTER "x"

namespace godwit::kernels {
namespace {

using Vec = __m256;
using Mask = __m256;  // the sign bit of each lane

constexpr int64_t kLanes = 8;
// Registers: 16. Vectors side by side in a register tile of several rows (6 x 2 accumulators).
constexpr int kTileVecs = 2;

GODWIT_INLINE Vec Zero() { return _mm256_setzero_ps(); }
GODWIT_INLINE Vec Set1(float x) { return _mm256_set1_ps(x); }
GODWIT_INLINE float First(Vec x) { return _mm256_cvtss_f32(x); }

// Lanes [begin, end); the bounds may lie outside the vector.
GODWIT_INLINE Mask LanesBetween(int64_t begin, int64_t end) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(begin)), lane);
  const __m256i within = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(end)), lane);
  return _mm256_castsi256_ps(_mm256_andnot_si256(before, within));
}

GODWIT_INLINE Vec Select(Mask mask, Vec yes, Vec no) { return _mm256_blendv_ps(no, yes, mask); }
GODWIT_INLINE Mask IsNegative(Vec x) { return _mm256_cmp_ps(x, Zero(), _CMP_LT_OQ); }
GODWIT_INLINE bool AnyPositive(Vec x) {
  return _mm256_movemask_ps(_mm256_cmp_ps(x, Zero(), _CMP_GT_OQ)) != 0;
}

// Loads widen to f32; LoadFirst reads n < kLanes elements and zeroes the other lanes.
GODWIT_INLINE Vec Load(const float* p) { return _mm256_loadu_ps(p); }
GODWIT_INLINE Vec LoadFirst(const float* p, int64_t n) {
  return _mm256_maskload_ps(p, _mm256_castps_si256(LanesBetween(0, n)));
}
GODWIT_INLINE Vec Widen(__m128i bf16) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16));
}
// AVX2 has no masked access to 16-bit lanes.
template <class Half>
GODWIT_INLINE __m128i LoadFirstHalves(const Half* p, int64_t n) {
  alignas(16) uint16_t lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i].bits;
  return _mm_load_si128(reinterpret_cast<const __m128i*>(lanes));
}
GODWIT_INLINE Vec Load(const BF16* p) {
  return Widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
GODWIT_INLINE Vec LoadFirst(const BF16* p, int64_t n) { return Widen(LoadFirstHalves(p, n)); }
GODWIT_INLINE Vec Load(const F16* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
GODWIT_INLINE Vec LoadFirst(const F16* p, int64_t n) {
  return _mm256_cvtph_ps(LoadFirstHalves(p, n));
}

// Pairs of neighbouring bf16, kLanes of them: the even and the odd halves as f32.
GODWIT_INLINE Vec EvenHalf(Vec pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(pairs), 16));
}
GODWIT_INLINE Vec OddHalf(Vec pairs) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return _mm256_and_ps(pairs, _mm256_castsi256_ps(mask));
}

// Exact numbers of bf16, kLanes of each half, to pairs.
GODWIT_INLINE void StorePairs(BF16* p, Vec even, Vec odd) {
  const __m256i low = _mm256_srli_epi32(_mm256_castps_si256(even), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm256_or_si256(low, _mm256_castps_si256(OddHalf(odd))));
}

// Stores to BF16 and F16 round as tensor/dtype.h does.
GODWIT_INLINE void Store(float* p, Vec x) { _mm256_storeu_ps(p, x); }
GODWIT_INLINE void StoreFirst(float* p, Vec x, int64_t n) {
  _mm256_maskstore_ps(p, _mm256_castps_si256(LanesBetween(0, n)), x);
}
GODWIT_INLINE __m128i NarrowToBF16(Vec x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i narrow = _mm256_blendv_epi8(rounded, quiet, nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(narrow), _mm256_extracti128_si256(narrow, 1));
}
GODWIT_INLINE Vec RoundToBF16(Vec x) { return Widen(NarrowToBF16(x)); }
GODWIT_INLINE __m128i NarrowToF16(Vec x) {
  return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
template <class Half>
GODWIT_INLINE void StoreFirstHalves(Half* p, __m128i x, int64_t n) {
  alignas(16) uint16_t lanes[kLanes];
  _mm_store_si128(reinterpret_cast<__m128i*>(lanes), x);
  for (int64_t i = 0; i < n; ++i) p[i].bits = lanes[i];
}
GODWIT_INLINE void Store(BF16* p, Vec x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), NarrowToBF16(x));
}
GODWIT_INLINE void StoreFirst(BF16* p, Vec x, int64_t n) {
  StoreFirstHalves(p, NarrowToBF16(x), n);
}
GODWIT_INLINE void Store(F16* p, Vec x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), NarrowToF16(x));
}
GODWIT_INLINE void StoreFirst(F16* p, Vec x, int64_t n) { StoreFirstHalves(p, NarrowToF16(x), n); }

GODWIT_INLINE Vec Add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
GODWIT_INLINE Vec Sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
GODWIT_INLINE Vec Mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
GODWIT_INLINE Vec Div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
GODWIT_INLINE Vec Sqrt(Vec x) { return _mm256_sqrt_ps(x); }
GODWIT_INLINE Vec Abs(Vec x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
GODWIT_INLINE Vec MulAdd(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }      // a * b + c
GODWIT_INLINE Vec MulSub(Vec a, Vec b, Vec c) { return _mm256_fmsub_ps(a, b, c); }      // a * b - c
GODWIT_INLINE Vec NegMulAdd(Vec a, Vec b, Vec c) { return _mm256_fnmadd_ps(a, b, c); }  // c - a * b
// sum + a * b, in the register of the sum. Left to itself, GCC 12 lets products of bf16 halves take
// the place of their factors. It then runs out of registers. Five of the twelve sums of a tile went
// through memory, at 0.7 of the speed.
GODWIT_INLINE Vec AddProduct(Vec a, Vec b, Vec sum) {
  __asm__("vfmadd231ps %1, %2, %0" : "+x"(sum) : "x"(a), "x"(b));
  return sum;
}

// The second operand where either is NaN.
GODWIT_INLINE Vec Max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
GODWIT_INLINE Vec Min(Vec a, Vec b) { return _mm256_min_ps(a, b); }

// Round to the nearest integer, ties to even.
GODWIT_INLINE Vec Round(Vec x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// 2^n for integers n in [-126, 127].
GODWIT_INLINE Vec PowerOf2(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

// Computes x * 2^n for integers n in [-252, 252], rounded once if x is near one. It takes two
// steps, of which the first is exact, since 2^n itself may not be a float. NaN in n gives some
// finite factor.
GODWIT_INLINE Vec ScaleByPowerOf2(Vec x, Vec n) {
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  return Mul(Mul(x, PowerOf2(half)), PowerOf2(_mm256_sub_epi32(whole, half)));
}

GODWIT_INLINE Vec Floor(Vec x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
// x - floor(x), but NaN of an infinity, which ScaleByFloor takes for any number.
GODWIT_INLINE Vec Fraction(Vec x) { return _mm256_sub_ps(x, Floor(x)); }
// x * 2^floor(n) for x in [1, 2]; of n below -126 zero, whatever x is.
GODWIT_INLINE Vec ScaleByFloor(Vec x, Vec n) {
  const __m256i exponents = _mm256_slli_epi32(_mm256_cvtps_epi32(Floor(n)), 23);
  const __m256i scaled = _mm256_add_epi32(_mm256_castps_si256(x), exponents);
  const __m256 tiny = _mm256_cmp_ps(n, _mm256_set1_ps(-126.0f), _CMP_LT_OQ);
  return _mm256_andnot_ps(tiny, _mm256_castsi256_ps(scaled));
}

// Integers in the bits of a vector: kLanes int32, or twice as many int16, or four times the bytes.
GODWIT_INLINE Vec AddInts(Vec a, Vec b) {
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
GODWIT_INLINE Vec Set1Ints(int32_t x) { return _mm256_castsi256_ps(_mm256_set1_epi32(x)); }
GODWIT_INLINE Vec AddToInts(Vec a, int32_t b) { return AddInts(a, Set1Ints(b)); }
GODWIT_INLINE Vec IntsToFloats(Vec ints) { return _mm256_cvtepi32_ps(_mm256_castps_si256(ints)); }
// To the nearest int32, ties to even.
GODWIT_INLINE Vec FloatsToInts(Vec x) { return _mm256_castsi256_ps(_mm256_cvtps_epi32(x)); }
// Every second of unsigned bytes, as int16.
GODWIT_INLINE Vec EvenBytes(Vec bytes) {
  return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(bytes), _mm256_set1_epi16(0xff)));
}
GODWIT_INLINE Vec OddBytes(Vec bytes) {
  return _mm256_castsi256_ps(_mm256_srli_epi16(_mm256_castps_si256(bytes), 8));
}
// The even ones of signed bytes, as int16, and the odd ones.
GODWIT_INLINE Vec EvenBytesSigned(Vec bytes) {
  const auto even = _mm256_slli_epi16(_mm256_castps_si256(bytes), 8);
  return _mm256_castsi256_ps(_mm256_srai_epi16(even, 8));
}
GODWIT_INLINE Vec OddBytesSigned(Vec bytes) {
  return _mm256_castsi256_ps(_mm256_srai_epi16(_mm256_castps_si256(bytes), 8));
}
// The products of int16, neighbours added, as int32.
GODWIT_INLINE Vec PairProducts(Vec a, Vec b) {
  return _mm256_castsi256_ps(_mm256_madd_epi16(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
// sum + the products of int16, neighbours added, as int32 that wrap around. Left to itself, GCC
// adds the products of several calls to each other first and keeps them in memory until it does.
GODWIT_INLINE Vec AddPairProducts(Vec a, Vec b, Vec sum) {
  const __m256i pairs = _mm256_madd_epi16(_mm256_castps_si256(a), _mm256_castps_si256(b));
  __asm__("vpaddd %1, %0, %0" : "+x"(sum) : "x"(pairs));
  return sum;
}
// sum + the products of unsigned bytes of at most 127 and signed ones, the four of a quad added.
GODWIT_INLINE Vec AddSmallQuadProducts(Vec small, Vec bytes, Vec sum) {
  const __m256i pairs =
      _mm256_maddubs_epi16(_mm256_castps_si256(small), _mm256_castps_si256(bytes));
  return AddPairProducts(_mm256_castsi256_ps(pairs), _mm256_castsi256_ps(_mm256_set1_epi16(1)),
                         sum);
}
// The products of unsigned bytes and signed ones, neighbours added, as int16 that must hold them.
GODWIT_INLINE Vec ByteProducts(Vec unsigned_bytes, Vec signed_bytes) {
  return _mm256_castsi256_ps(
      _mm256_maddubs_epi16(_mm256_castps_si256(unsigned_bytes), _mm256_castps_si256(signed_bytes)));
}
// sum + those, as int16 that wrap around; see AddPairProducts.
GODWIT_INLINE Vec AddByteProducts(Vec unsigned_bytes, Vec signed_bytes, Vec sum) {
  const Vec products = ByteProducts(unsigned_bytes, signed_bytes);
  __asm__("vpaddw %1, %0, %0" : "+x"(sum) : "x"(products));
  return sum;
}
GODWIT_INLINE Vec Set1Words(int16_t x) { return _mm256_castsi256_ps(_mm256_set1_epi16(x)); }
// Byte k of every quad: of signed bytes, or with kExcess of unsigned ones, less 128.
template <int k, bool kExcess>
GODWIT_INLINE Vec ByteOfQuads(Vec quads) {
  __m256i bytes = _mm256_castps_si256(quads);
  if constexpr (kExcess) bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8(-128));
  const __m256i top = _mm256_slli_epi32(bytes, 24 - 8 * k);
  return IntsToFloats(_mm256_castsi256_ps(_mm256_srai_epi32(top, 24)));
}
// 4 * kLanes bytes in quads (a, b, c, d) to the int16 (a, c, b, d), as Even- and OddBytes split
// them.
GODWIT_INLINE void WidenQuads(const int8_t* p, int16_t* out) {
  const __m128i swap = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  for (int half = 0; half < 2; ++half) {
    const __m128i quads = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + half);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out) + half,
                        _mm256_cvtepi8_epi16(_mm_shuffle_epi8(quads, swap)));
  }
}

// The halves of bytes; the byte of a table of 16, one for each 16 bytes of the vector, that a half
// names.
GODWIT_INLINE Vec LowNibbles(Vec bytes) {
  return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(bytes), _mm256_set1_epi8(15)));
}
GODWIT_INLINE Vec HighNibbles(Vec bytes) {
  return LowNibbles(_mm256_castsi256_ps(_mm256_srli_epi16(_mm256_castps_si256(bytes), 4)));
}
// The bytes of `low` with those bits of kMask that `high` has so many places further right, if
// kLeft is below 0 further left.
template <int kLeft, int kMask>
GODWIT_INLINE Vec WithBits(Vec low, Vec high) {
  const __m256i bits = _mm256_castps_si256(high);
  const __m256i moved = kLeft < 0 ? _mm256_srli_epi32(bits, kLeft < 0 ? -kLeft : 0)
                                  : _mm256_slli_epi32(bits, kLeft < 0 ? 0 : kLeft);
  return _mm256_castsi256_ps(
      _mm256_or_si256(_mm256_castps_si256(low), _mm256_and_si256(moved, _mm256_set1_epi8(kMask))));
}
GODWIT_INLINE Vec LookUp(Vec tables, Vec nibbles) {
  return _mm256_castsi256_ps(
      _mm256_shuffle_epi8(_mm256_castps_si256(tables), _mm256_castps_si256(nibbles)));
}
GODWIT_INLINE Vec AddBytes(Vec a, Vec b) {
  return _mm256_castsi256_ps(_mm256_add_epi8(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
// Unsigned bytes less 128, as signed ones.
GODWIT_INLINE Vec LessExcess(Vec bytes) {
  return AddBytes(bytes, Set1Ints(static_cast<int32_t>(0x80808080u)));
}
GODWIT_INLINE Vec AddWords(Vec a, Vec b) {
  return _mm256_castsi256_ps(_mm256_add_epi16(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
GODWIT_INLINE Vec SubWords(Vec a, Vec b) {
  return _mm256_castsi256_ps(_mm256_sub_epi16(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
// The sums of even bytes, if below 2^16, from sums of words and of their odd bytes.
GODWIT_INLINE Vec EvenSums(Vec words, Vec odd) {
  return _mm256_castsi256_ps(
      _mm256_sub_epi16(_mm256_castps_si256(words), _mm256_slli_epi16(_mm256_castps_si256(odd), 8)));
}
GODWIT_INLINE Vec MaxWords(Vec a, Vec b) {
  return _mm256_castsi256_ps(_mm256_max_epu16(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
GODWIT_INLINE Vec MaxInts(Vec a, Vec b) {
  return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
GODWIT_INLINE int32_t ReduceMaxWords(Vec words) { return LargestWord(_mm256_castps_si256(words)); }
GODWIT_INLINE int32_t ReduceMaxInts(Vec ints) { return LargestInt(_mm256_castps_si256(ints)); }

// 16 bytes, over and over.
GODWIT_INLINE Vec Repeat16(const uint8_t* p) {
  return _mm256_castsi256_ps(
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
// Within each 16 bytes: byte k of four quads, for every k in turn.
GODWIT_INLINE Vec TransposeBytes(Vec bytes) {
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm256_castsi256_ps(
      _mm256_shuffle_epi8(_mm256_castps_si256(bytes), _mm256_broadcastsi128_si256(order)));
}

// Within each 16 bytes: the elements, of kBytes each, of the lower or upper halves of two vectors,
// in turn.
template <int kBytes>
GODWIT_INLINE Vec InterleaveLow(Vec a, Vec b) {
  const auto x = _mm256_castps_si256(a), y = _mm256_castps_si256(b);
  if constexpr (kBytes == 1) return _mm256_castsi256_ps(_mm256_unpacklo_epi8(x, y));
  if constexpr (kBytes == 2) return _mm256_castsi256_ps(_mm256_unpacklo_epi16(x, y));
  if constexpr (kBytes == 4) return _mm256_castsi256_ps(_mm256_unpacklo_epi32(x, y));
  if constexpr (kBytes == 8) return _mm256_castsi256_ps(_mm256_unpacklo_epi64(x, y));
}
template <int kBytes>
GODWIT_INLINE Vec InterleaveHigh(Vec a, Vec b) {
  const auto x = _mm256_castps_si256(a), y = _mm256_castps_si256(b);
  if constexpr (kBytes == 1) return _mm256_castsi256_ps(_mm256_unpackhi_epi8(x, y));
  if constexpr (kBytes == 2) return _mm256_castsi256_ps(_mm256_unpackhi_epi16(x, y));
  if constexpr (kBytes == 4) return _mm256_castsi256_ps(_mm256_unpackhi_epi32(x, y));
  if constexpr (kBytes == 8) return _mm256_castsi256_ps(_mm256_unpackhi_epi64(x, y));
}
// Each 16 bytes to a place of their own, `stride` bytes from one to the next.
GODWIT_INLINE void StoreSixteens(char* p, int64_t stride, Vec x) {
  _mm_storeu_ps(reinterpret_cast<float*>(p), _mm256_castps256_ps128(x));
  _mm_storeu_ps(reinterpret_cast<float*>(p + stride), _mm256_extractf128_ps(x, 1));
}

// int8 from int32 in [-128, 127]; widened to f32 by loads.
GODWIT_INLINE __m128i NarrowToBytes(Vec ints) {
  const __m256i x = _mm256_castps_si256(ints);
  const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  return _mm_packs_epi16(halves, halves);
}
GODWIT_INLINE void StoreBytes(int8_t* p, Vec ints) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), NarrowToBytes(ints));
}
GODWIT_INLINE void StoreFirstBytes(int8_t* p, Vec ints, int64_t n) {
  alignas(16) int8_t lanes[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(lanes), NarrowToBytes(ints));
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
GODWIT_INLINE Vec Load(const int8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
GODWIT_INLINE Vec Load(const uint8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
// 2 * kLanes unsigned bytes as int16.
GODWIT_INLINE Vec LoadWords(const int8_t* p) {
  return _mm256_castsi256_ps(
      _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

// The larger of numbers that are not negative, and NaN where either is.
GODWIT_INLINE Vec MaxOrNan(Vec a, Vec b) {
  return _mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
GODWIT_INLINE float ReduceMaxOrNan(Vec x) {
  const __m256i y = _mm256_castps_si256(x);
  const __m128i z = _mm_max_epu32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
  const __m128i w = _mm_max_epu32(z, _mm_shuffle_epi32(z, 0x4e));
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epu32(w, _mm_shuffle_epi32(w, 0xb1))));
}

// Reductions fold halves, in an order that is written here: the compilers' own differ.
GODWIT_INLINE float ReduceAdd(Vec x) {
  const __m128 z = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 w = _mm_add_ps(z, _mm_movehl_ps(z, z));
  return _mm_cvtss_f32(_mm_add_ss(w, _mm_shuffle_ps(w, w, 1)));
}
GODWIT_INLINE float ReduceMax(Vec x) {
  const __m128 z = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 w = _mm_max_ps(z, _mm_movehl_ps(z, z));
  return _mm_cvtss_f32(_mm_max_ss(w, _mm_shuffle_ps(w, w, 1)));
}

}  // namespace
}  // namespace godwit::kernels
