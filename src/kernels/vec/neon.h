// The vector vocabulary of NEON, as every 64-bit Arm processor has it: 4 floats. See vec/avx512.h
// for the names and for why everything stands in an anonymous namespace.
//
// Functions at the end need instructions that are newer. They are there in files that are compiled
// for those.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/kernel_table.h"

#define GODWIT_INLINE inline __attribute__((always_inline))
#define GODWIT_VECTOR_REGISTER "w"

namespace godwit::kernels {
namespace {

using Vec = float32x4_t;
using Mask = uint32x4_t;  // all bits of each lane

constexpr int64_t kLanes = 4;
// Registers: 32. Vectors side by side in a register tile of several rows (6 x 4 accumulators).
constexpr int kTileVecs = 4;

GODWIT_INLINE int32x4_t Ints(Vec x) { return vreinterpretq_s32_f32(x); }
GODWIT_INLINE uint32x4_t Unsigned(Vec x) { return vreinterpretq_u32_f32(x); }
GODWIT_INLINE int16x8_t Words(Vec x) { return vreinterpretq_s16_f32(x); }
GODWIT_INLINE uint16x8_t UnsignedWords(Vec x) { return vreinterpretq_u16_f32(x); }
GODWIT_INLINE int8x16_t Bytes(Vec x) { return vreinterpretq_s8_f32(x); }
GODWIT_INLINE uint8x16_t UnsignedBytes(Vec x) { return vreinterpretq_u8_f32(x); }
GODWIT_INLINE Vec Bits(int32x4_t x) { return vreinterpretq_f32_s32(x); }
GODWIT_INLINE Vec Bits(uint32x4_t x) { return vreinterpretq_f32_u32(x); }
GODWIT_INLINE Vec Bits(int16x8_t x) { return vreinterpretq_f32_s16(x); }
GODWIT_INLINE Vec Bits(uint16x8_t x) { return vreinterpretq_f32_u16(x); }
GODWIT_INLINE Vec Bits(int8x16_t x) { return vreinterpretq_f32_s8(x); }
GODWIT_INLINE Vec Bits(uint8x16_t x) { return vreinterpretq_f32_u8(x); }

GODWIT_INLINE Vec Zero() { return vdupq_n_f32(0.0f); }
GODWIT_INLINE Vec Set1(float x) { return vdupq_n_f32(x); }
GODWIT_INLINE float First(Vec x) { return vgetq_lane_f32(x, 0); }

// Lanes [begin, end); the bounds may lie outside the vector.
GODWIT_INLINE Mask LanesBetween(int64_t begin, int64_t end) {
  const int32_t lanes[kLanes] = {0, 1, 2, 3};
  const int32x4_t lane = vld1q_s32(lanes);
  return vandq_u32(vcgeq_s32(lane, vdupq_n_s32(static_cast<int32_t>(begin))),
                   vcltq_s32(lane, vdupq_n_s32(static_cast<int32_t>(end))));
}

GODWIT_INLINE Vec Select(Mask mask, Vec yes, Vec no) { return vbslq_f32(mask, yes, no); }
GODWIT_INLINE Mask IsNegative(Vec x) { return vcltzq_f32(x); }
GODWIT_INLINE bool AnyPositive(Vec x) { return vmaxvq_u32(vcgtzq_f32(x)) != 0; }

// A register from memory and to it. The intrinsics would let compilers assume that the elements
// have the type of the pointer.
template <class Register, class T>
GODWIT_INLINE Register Read(const T* p) {
  Register x;
  __builtin_memcpy(&x, p, sizeof(x));
  return x;
}
template <class Register, class T>
GODWIT_INLINE void Write(T* p, Register x) {
  __builtin_memcpy(p, &x, sizeof(x));
}

// Loads widen to f32; LoadFirst reads n < kLanes elements and zeroes the other lanes. NEON has no
// masked access, so they go through memory.
GODWIT_INLINE Vec Load(const float* p) { return Read<Vec>(p); }
GODWIT_INLINE Vec LoadFirst(const float* p, int64_t n) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return Read<Vec>(lanes);
}
GODWIT_INLINE Vec Widen(uint16x4_t bf16) { return Bits(vshll_n_u16(bf16, 16)); }
GODWIT_INLINE Vec WidenF16(uint16x4_t f16) { return vcvt_f32_f16(vreinterpret_f16_u16(f16)); }
template <class Half>
GODWIT_INLINE uint16x4_t LoadFirstHalves(const Half* p, int64_t n) {
  uint16_t lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i].bits;
  return Read<uint16x4_t>(lanes);
}
GODWIT_INLINE Vec Load(const BF16* p) { return Widen(Read<uint16x4_t>(p)); }
GODWIT_INLINE Vec LoadFirst(const BF16* p, int64_t n) { return Widen(LoadFirstHalves(p, n)); }
GODWIT_INLINE Vec Load(const F16* p) { return WidenF16(Read<uint16x4_t>(p)); }
GODWIT_INLINE Vec LoadFirst(const F16* p, int64_t n) { return WidenF16(LoadFirstHalves(p, n)); }

// Pairs of neighbouring bf16, kLanes of them: the even and the odd halves as f32.
GODWIT_INLINE Vec EvenHalf(Vec pairs) { return Bits(vshlq_n_u32(Unsigned(pairs), 16)); }
GODWIT_INLINE Vec OddHalf(Vec pairs) {
  return Bits(vandq_u32(Unsigned(pairs), vdupq_n_u32(0xffff0000u)));
}

// Exact numbers of bf16, kLanes of each half, to pairs.
GODWIT_INLINE void StorePairs(BF16* p, Vec even, Vec odd) {
  Write(p, vsriq_n_u32(Unsigned(odd), Unsigned(even), 16));
}

// Stores to BF16 and F16 round as tensor/dtype.h does.
GODWIT_INLINE void Store(float* p, Vec x) { Write(p, x); }
GODWIT_INLINE void StoreFirst(float* p, Vec x, int64_t n) {
  float lanes[kLanes];
  Write(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
GODWIT_INLINE uint16x4_t NarrowToBF16(Vec x) {
  const uint32x4_t bits = Unsigned(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
}
GODWIT_INLINE Vec RoundToBF16(Vec x) { return Widen(NarrowToBF16(x)); }
GODWIT_INLINE uint16x4_t NarrowToF16(Vec x) { return vreinterpret_u16_f16(vcvt_f16_f32(x)); }
template <class Half>
GODWIT_INLINE void StoreFirstHalves(Half* p, uint16x4_t x, int64_t n) {
  uint16_t lanes[kLanes];
  Write(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i].bits = lanes[i];
}
GODWIT_INLINE void Store(BF16* p, Vec x) { Write(p, NarrowToBF16(x)); }
GODWIT_INLINE void StoreFirst(BF16* p, Vec x, int64_t n) {
  StoreFirstHalves(p, NarrowToBF16(x), n);
}
GODWIT_INLINE void Store(F16* p, Vec x) { Write(p, NarrowToF16(x)); }
GODWIT_INLINE void StoreFirst(F16* p, Vec x, int64_t n) { StoreFirstHalves(p, NarrowToF16(x), n); }

GODWIT_INLINE Vec Add(Vec a, Vec b) { return vaddq_f32(a, b); }
GODWIT_INLINE Vec Sub(Vec a, Vec b) { return vsubq_f32(a, b); }
GODWIT_INLINE Vec Mul(Vec a, Vec b) { return vmulq_f32(a, b); }
GODWIT_INLINE Vec Div(Vec a, Vec b) { return vdivq_f32(a, b); }
GODWIT_INLINE Vec Sqrt(Vec x) { return vsqrtq_f32(x); }
GODWIT_INLINE Vec Abs(Vec x) { return vabsq_f32(x); }
GODWIT_INLINE Vec MulAdd(Vec a, Vec b, Vec c) { return vfmaq_f32(c, a, b); }  // a * b + c
GODWIT_INLINE Vec MulSub(Vec a, Vec b, Vec c) {
  return vfmaq_f32(vnegq_f32(c), a, b);
}  // a * b - c
GODWIT_INLINE Vec NegMulAdd(Vec a, Vec b, Vec c) { return vfmsq_f32(c, a, b); }  // c - a * b
GODWIT_INLINE Vec AddProduct(Vec a, Vec b, Vec sum) { return vfmaq_f32(sum, a, b); }

// The second operand where either is NaN. FMAX and FMIN would give the NaN of either.
GODWIT_INLINE Vec Max(Vec a, Vec b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
GODWIT_INLINE Vec Min(Vec a, Vec b) { return vbslq_f32(vcltq_f32(a, b), a, b); }

// Round to the nearest integer, ties to even.
GODWIT_INLINE Vec Round(Vec x) { return vrndnq_f32(x); }

// 2^n for integers n in [-126, 127].
GODWIT_INLINE Vec PowerOf2(int32x4_t n) {
  return Bits(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}

// Computes x * 2^n for integers n in [-252, 252], rounded once if x is near one. It takes two
// steps, of which the first is exact, since 2^n itself may not be a float. NaN in n gives some
// finite factor.
GODWIT_INLINE Vec ScaleByPowerOf2(Vec x, Vec n) {
  const int32x4_t whole = vcvtnq_s32_f32(n);
  const int32x4_t half = vshrq_n_s32(whole, 1);
  return Mul(Mul(x, PowerOf2(half)), PowerOf2(vsubq_s32(whole, half)));
}

GODWIT_INLINE Vec Floor(Vec x) { return vrndmq_f32(x); }
// x - floor(x), but NaN of an infinity, which ScaleByFloor takes for any number.
GODWIT_INLINE Vec Fraction(Vec x) { return vsubq_f32(x, Floor(x)); }
// x * 2^floor(n) for x in [1, 2] and n <= 128; of n below -126 zero, whatever x is.
GODWIT_INLINE Vec ScaleByFloor(Vec x, Vec n) {
  const int32x4_t scaled = vaddq_s32(Ints(x), vshlq_n_s32(vcvtmq_s32_f32(n), 23));
  const uint32x4_t tiny = vcltq_f32(n, vdupq_n_f32(-126.0f));
  return Bits(vbicq_s32(scaled, vreinterpretq_s32_u32(tiny)));
}

// Integers in the bits of a vector: kLanes int32, or twice as many int16, or four times the bytes.
GODWIT_INLINE Vec AddInts(Vec a, Vec b) { return Bits(vaddq_s32(Ints(a), Ints(b))); }
GODWIT_INLINE Vec Set1Ints(int32_t x) { return Bits(vdupq_n_s32(x)); }
GODWIT_INLINE Vec AddToInts(Vec a, int32_t b) { return AddInts(a, Set1Ints(b)); }
GODWIT_INLINE Vec IntsToFloats(Vec ints) { return vcvtq_f32_s32(Ints(ints)); }
// To the nearest int32, ties to even.
GODWIT_INLINE Vec FloatsToInts(Vec x) { return Bits(vcvtnq_s32_f32(x)); }
// Every second of unsigned bytes, as int16.
GODWIT_INLINE Vec EvenBytes(Vec bytes) {
  return Bits(vandq_u16(UnsignedWords(bytes), vdupq_n_u16(0xff)));
}
GODWIT_INLINE Vec OddBytes(Vec bytes) { return Bits(vshrq_n_u16(UnsignedWords(bytes), 8)); }
// The even ones of signed bytes, as int16, and the odd ones.
GODWIT_INLINE Vec EvenBytesSigned(Vec bytes) {
  return Bits(vshrq_n_s16(vshlq_n_s16(Words(bytes), 8), 8));
}
GODWIT_INLINE Vec OddBytesSigned(Vec bytes) { return Bits(vshrq_n_s16(Words(bytes), 8)); }
// The products of int16, neighbours added, as int32.
GODWIT_INLINE Vec PairProducts(Vec a, Vec b) {
  const int32x4_t low = vmull_s16(vget_low_s16(Words(a)), vget_low_s16(Words(b)));
  return Bits(vpaddq_s32(low, vmull_high_s16(Words(a), Words(b))));
}
// sum + the products of int16, neighbours added, as int32 that wrap around.
GODWIT_INLINE Vec AddPairProducts(Vec a, Vec b, Vec sum) {
  return AddInts(PairProducts(a, b), sum);
}
// The products of bytes of at most 127 and signed ones, neighbours added, as int16 that must hold
// them.
GODWIT_INLINE Vec ByteProducts(Vec small, Vec bytes) {
  const int16x8_t low = vmull_s8(vget_low_s8(Bytes(small)), vget_low_s8(Bytes(bytes)));
  return Bits(vpaddq_s16(low, vmull_high_s8(Bytes(small), Bytes(bytes))));
}
// sum + the products of bytes of at most 127 and signed ones, the four of a quad added.
GODWIT_INLINE Vec AddSmallQuadProducts(Vec small, Vec bytes, Vec sum) {
  return Bits(vpadalq_s16(Ints(sum), Words(ByteProducts(small, bytes))));
}
// sum + ByteProducts, as int16 that wrap around.
GODWIT_INLINE Vec AddByteProducts(Vec small, Vec bytes, Vec sum) {
  return Bits(vaddq_s16(Words(sum), Words(ByteProducts(small, bytes))));
}
GODWIT_INLINE Vec Set1Words(int16_t x) { return Bits(vdupq_n_s16(x)); }
// Byte k of every quad: of signed bytes, or with kExcess of unsigned ones, less 128.
template <int k, bool kExcess>
GODWIT_INLINE Vec ByteOfQuads(Vec quads) {
  uint32x4_t bytes = Unsigned(quads);
  if constexpr (kExcess) bytes = veorq_u32(bytes, vdupq_n_u32(0x80808080u));
  int32x4_t top = vreinterpretq_s32_u32(bytes);
  if constexpr (k < 3) top = vshlq_n_s32(top, 24 - 8 * k);
  return vcvtq_f32_s32(vshrq_n_s32(top, 24));
}
// 4 * kLanes bytes in quads (a, b, c, d) to the int16 (a, c, b, d), as Even- and OddBytes split
// them.
GODWIT_INLINE void WidenQuads(const int8_t* p, int16_t* out) {
  const uint8_t swap[16] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
  const int8x16_t quads = vqtbl1q_s8(Read<int8x16_t>(p), vld1q_u8(swap));
  Write(out, vmovl_s8(vget_low_s8(quads)));
  Write(out + 8, vmovl_high_s8(quads));
}

// The halves of bytes; the byte of a table of 16, one for each 16 bytes of the vector, that a half
// names.
GODWIT_INLINE Vec LowNibbles(Vec bytes) {
  return Bits(vandq_u8(UnsignedBytes(bytes), vdupq_n_u8(15)));
}
GODWIT_INLINE Vec HighNibbles(Vec bytes) { return Bits(vshrq_n_u8(UnsignedBytes(bytes), 4)); }
// The bytes of `low` with those bits of kMask that `high` has so many places further right, if
// kLeft is below 0 further left.
template <int kLeft, int kMask>
GODWIT_INLINE Vec WithBits(Vec low, Vec high) {
  uint32x4_t moved = Unsigned(high);
  if constexpr (kLeft < 0) moved = vshrq_n_u32(moved, -kLeft);
  if constexpr (kLeft > 0) moved = vshlq_n_u32(moved, kLeft);
  return Bits(vorrq_u32(Unsigned(low), vandq_u32(moved, vdupq_n_u32(kMask * 0x01010101u))));
}
GODWIT_INLINE Vec LookUp(Vec tables, Vec nibbles) {
  return Bits(vqtbl1q_u8(UnsignedBytes(tables), UnsignedBytes(nibbles)));
}
GODWIT_INLINE Vec AddBytes(Vec a, Vec b) { return Bits(vaddq_s8(Bytes(a), Bytes(b))); }
// Unsigned bytes less 128, as signed ones.
GODWIT_INLINE Vec LessExcess(Vec bytes) {
  return AddBytes(bytes, Set1Ints(static_cast<int32_t>(0x80808080u)));
}
GODWIT_INLINE Vec AddWords(Vec a, Vec b) { return Bits(vaddq_s16(Words(a), Words(b))); }
GODWIT_INLINE Vec SubWords(Vec a, Vec b) { return Bits(vsubq_s16(Words(a), Words(b))); }
// The sums of even bytes, if below 2^16, from sums of words and of their odd bytes.
GODWIT_INLINE Vec EvenSums(Vec words, Vec odd) {
  return Bits(vsubq_s16(Words(words), vshlq_n_s16(Words(odd), 8)));
}
GODWIT_INLINE Vec MaxWords(Vec a, Vec b) {
  return Bits(vmaxq_u16(UnsignedWords(a), UnsignedWords(b)));
}
GODWIT_INLINE Vec MaxInts(Vec a, Vec b) { return Bits(vmaxq_s32(Ints(a), Ints(b))); }
GODWIT_INLINE int32_t ReduceMaxWords(Vec words) { return vmaxvq_u16(UnsignedWords(words)); }
GODWIT_INLINE int32_t ReduceMaxInts(Vec ints) { return vmaxvq_s32(Ints(ints)); }

// 16 bytes, over and over.
GODWIT_INLINE Vec Repeat16(const uint8_t* p) { return Read<Vec>(p); }
// Within each 16 bytes: byte k of four quads, for every k in turn.
GODWIT_INLINE Vec TransposeBytes(Vec bytes) {
  const uint8_t order[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  return Bits(vqtbl1q_u8(UnsignedBytes(bytes), vld1q_u8(order)));
}

// Within each 16 bytes: the elements, of kBytes each, of the lower or upper halves of two vectors,
// in turn.
template <int kBytes>
GODWIT_INLINE Vec InterleaveLow(Vec a, Vec b) {
  if constexpr (kBytes == 1) return Bits(vzip1q_u8(UnsignedBytes(a), UnsignedBytes(b)));
  if constexpr (kBytes == 2) return Bits(vzip1q_u16(UnsignedWords(a), UnsignedWords(b)));
  if constexpr (kBytes == 4) return vzip1q_f32(a, b);
  if constexpr (kBytes == 8) {
    return vreinterpretq_f32_u64(vzip1q_u64(vreinterpretq_u64_f32(a), vreinterpretq_u64_f32(b)));
  }
}
template <int kBytes>
GODWIT_INLINE Vec InterleaveHigh(Vec a, Vec b) {
  if constexpr (kBytes == 1) return Bits(vzip2q_u8(UnsignedBytes(a), UnsignedBytes(b)));
  if constexpr (kBytes == 2) return Bits(vzip2q_u16(UnsignedWords(a), UnsignedWords(b)));
  if constexpr (kBytes == 4) return vzip2q_f32(a, b);
  if constexpr (kBytes == 8) {
    return vreinterpretq_f32_u64(vzip2q_u64(vreinterpretq_u64_f32(a), vreinterpretq_u64_f32(b)));
  }
}
// Each 16 bytes to a place of their own, `stride` bytes from one to the next: here there are 16.
GODWIT_INLINE void StoreSixteens(char* p, int64_t /*stride*/, Vec x) { Write(p, x); }

// int8 from int32 in [-128, 127]; widened to f32 by loads.
GODWIT_INLINE int8x8_t NarrowToBytes(Vec ints) {
  const int16x4_t words = vmovn_s32(Ints(ints));
  return vmovn_s16(vcombine_s16(words, words));
}
GODWIT_INLINE void StoreBytes(int8_t* p, Vec ints) {
  Write(p, vget_lane_s32(vreinterpret_s32_s8(NarrowToBytes(ints)), 0));
}
GODWIT_INLINE void StoreFirstBytes(int8_t* p, Vec ints, int64_t n) {
  int8_t lanes[8];
  Write(lanes, NarrowToBytes(ints));
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
GODWIT_INLINE Vec Load(const int8_t* p) {
  const int16x8_t words = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(Read<uint32_t>(p))));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
}
GODWIT_INLINE Vec Load(const uint8_t* p) {
  const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(Read<uint32_t>(p))));
  return vcvtq_f32_u32(vmovl_u16(vget_low_u16(words)));
}
// 2 * kLanes signed bytes as int16.
GODWIT_INLINE Vec LoadWords(const int8_t* p) { return Bits(vmovl_s8(Read<int8x8_t>(p))); }

// The larger of numbers that are not negative, and NaN where either is.
GODWIT_INLINE Vec MaxOrNan(Vec a, Vec b) { return Bits(vmaxq_u32(Unsigned(a), Unsigned(b))); }
GODWIT_INLINE float ReduceMaxOrNan(Vec x) {
  return __builtin_bit_cast(float, vmaxvq_u32(Unsigned(x)));
}

// Reductions fold halves, in an order that is written here: the compilers' own differ.
GODWIT_INLINE float ReduceAdd(Vec x) {
  const float32x2_t w = vadd_f32(vget_low_f32(x), vget_high_f32(x));
  return vget_lane_f32(w, 0) + vget_lane_f32(w, 1);
}
GODWIT_INLINE float ReduceMax(Vec x) {
  const Vec z = Max(x, vextq_f32(x, x, 2));
  return First(Max(z, vextq_f32(z, z, 1)));
}

#ifdef __ARM_FEATURE_DOTPROD
// sum + the products of signed quads: SDOT multiplies four bytes by four and adds them to an int32.
GODWIT_INLINE Vec AddSignedQuadProducts(Vec a, Vec b, Vec sum) {
  return Bits(vdotq_s32(Ints(sum), Bytes(a), Bytes(b)));
}
#endif

// Every second word of two vectors.
GODWIT_INLINE Vec EvenWords(Vec a, Vec b) { return vuzp1q_f32(a, b); }
GODWIT_INLINE Vec OddWords(Vec a, Vec b) { return vuzp2q_f32(a, b); }
// Eight bytes of each of two places, or four and zeros behind them.
template <class T>
GODWIT_INLINE Vec TwoDoubleWords(const T* a, const T* b) {
  return vcombine_f32(Read<float32x2_t>(a), Read<float32x2_t>(b));
}
template <class T>
GODWIT_INLINE Vec TwoWords(const T* a, const T* b) {
  const uint64_t first = Read<uint32_t>(a), second = Read<uint32_t>(b);
  return vreinterpretq_f32_u64(vcombine_u64(vcreate_u64(first), vcreate_u64(second)));
}

#ifdef __ARM_FEATURE_MATMUL_INT8
// sum + the products of unsigned and signed quads.
GODWIT_INLINE Vec AddQuadProducts(Vec unsigned_quads, Vec signed_quads, Vec sum) {
  return Bits(vusdotq_s32(Ints(sum), UnsignedBytes(unsigned_quads), Bytes(signed_quads)));
}
// sums [2, 2] + the products of two rows of eight bytes by two rows.
GODWIT_INLINE Vec AddUnsignedBySignedMatrices(Vec unsigned_rows, Vec signed_rows, Vec sums) {
  return Bits(vusmmlaq_s32(Ints(sums), UnsignedBytes(unsigned_rows), Bytes(signed_rows)));
}
GODWIT_INLINE Vec AddSignedMatrices(Vec a, Vec b, Vec sums) {
  return Bits(vmmlaq_s32(Ints(sums), Bytes(a), Bytes(b)));
}
#endif

#ifdef __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
// sum + the products of the even and of the odd halves of bf16 pairs.
GODWIT_INLINE Vec AddHalfProducts(Vec a, Vec b, Vec sum) {
  return vbfdotq_f32(sum, vreinterpretq_bf16_f32(a), vreinterpretq_bf16_f32(b));
}
// sums [2, 2] + the products of two rows of four bf16 by two rows. It adds pairs as AddHalfProducts
// does, the first pair first.
GODWIT_INLINE Vec AddPairMatrices(Vec a, Vec b, Vec sums) {
  return vbfmmlaq_f32(sums, vreinterpretq_bf16_f32(a), vreinterpretq_bf16_f32(b));
}
// As NarrowToBF16.
GODWIT_INLINE uint16x4_t NarrowByInstruction(Vec x) {
  return vreinterpret_u16_bf16(vcvt_bf16_f32(x));
}
#endif

}  // namespace
}  // namespace godwit::kernels
