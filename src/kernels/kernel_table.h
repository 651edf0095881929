// The contract of every kernel: signature, shapes, alignment, order of additions.
//
// A kernel runs on one core, on raw pointers, and neither allocates nor throws. Each instruction
// set fills one KernelTable (dispatch.h chooses); the scalar table is the definition that the
// others are tested against. Within one table the value of an output element depends on its own
// inputs only. It never depends on how many rows or columns are computed with it, nor on their
// place in the call. Therefore ops/ can split work freely and still give the same bits
// (ARCHITECTURE.md, "Same bits").
//
// Unless a line says otherwise: pointers are not null, counts may be any non-negative number,
// alignment is that of the element type. The norms and the elementwise kernels may write over an
// input (`out` equal to it, not overlapping it in part). Other outputs overlap no input.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/group_format.h"

namespace godwit::kernels {

// Output columns of one panel of a packed weight (packing.h has the layout).
inline constexpr int64_t kPanelColumns = 64;

// The keys of one KV tile. Tiles are cut by text position, so the partial sums of a query never
// depend on how its prompt was chunked.
inline constexpr int64_t kTileTokens = 64;

// Head dimensions are padded to this many floats wherever a kernel writes whole vectors.
inline constexpr int64_t kLaneFloats = 16;

// Elements of an int8 row that one step of a product consumes. Rows are padded to it with zeros.
inline constexpr int64_t kQuad = 4;

// The deepest int8 product: 128 * 128 * kMaxDepthI8 is below 2^31, so no dot product overflows.
inline constexpr int64_t kMaxDepthI8 = (int64_t{1} << 17) - kQuad;

// The widest head of attention: its int8 products are exact in f32, 127 * 127 * 1024 < 2^24.
inline constexpr int64_t kMaxHeadDim = 1024;

constexpr int64_t PadToLanes(int64_t n) {
  return (n + kLaneFloats - 1) / kLaneFloats * kLaneFloats;
}

// Computes out[i, j] = bias[j] + sum over k of a[i, k] * w[j, k]. Additions run over k in ascending
// order in one chain per element; the bias is added last. For bf16, two instruction sets have an
// order of their own (gemm/pairs_native-inl.h, tiles_amx-inl.h).
//
// I8 weights: with dot = sum over k of a[i, k] * w[j, k], exact in int32,
//   out[i, j] = (float(dot) * w_scales[j]) * a_scales[i] + bias[j]
//
// where the conversion and each operation rounds to nearest even on its own. No operations are
// fused, and without a bias nothing is added: the same bits on every instruction set. The weight's
// scale comes first since float(dot) * w_scales[j] is a sum of real weights. It cannot overflow
// where the result does not. a and w lie in [-128, 127], k <= kMaxDepthI8.
struct GemmArgs {
  const void* a;      // [rows, k]: f32 if the weights are F32 or F16, bf16 if BF16, int8 if I8
  int64_t a_stride;   // elements between rows; readable (and zero) to even k in bf16, kQuad in int8
  const void* w;      // packed panels of the whole weight (packing.h), 64-byte aligned
  const float* bias;  // [columns] or null
  float* out;         // [rows, columns] f32
  int64_t out_stride;  // elements between rows
  int64_t rows;
  int64_t k;
  int64_t columns;      // of the whole weight; the last panel may be partly padding
  int64_t panel_begin;  // the panels to compute
  int64_t panel_end;
  // Only if the weights are I8:
  const float* a_scales = nullptr;  // [rows]
  const int32_t* a_sums = nullptr;  // [rows], of the row's elements: the panels hold w + 128
  const float* w_scales = nullptr;  // [columns]
};

// Computes the same product as GemmArgs with grouped weights (tensor/group_format.h). A row of
// activations is quantized in the blocks of the weight, each with a scale of its own. For each
// group, with exact integers
//   dot = sum over its k of a[i, k] * (c[j, k] - centre), or of a[i, k] * table[c[j, k]]
//   sum = of its a[i, k]
// and over the groups of a block, in ascending order, a chain s from 0 of
//   kCentred     s = fma(float(dot), scale[j], s)
//   kZeros       s = fma(float(dot - zero[j] * sum), scale[j], s)
//   kMins        s = fma(float(dot), scale[j], s), then s = fma(float(sum), min[j], s)
//   nested       s = fma(float(dot), float(part[j]), s)
// then over the blocks, in ascending order, a chain x from 0 of
//   x = fma(s, a_scales[i], x), of nested ones fma(s * d[j], a_scales[i], x)
//   kNestedMins  and behind it x = fma(-(float(sum of min_part[j] * sum) * m[j]), a_scales[i], x)
// and out[i, j] = x * factors[j] + bias[j]; without factors x, without a bias nothing added. An fma
// rounds once, every other operation on its own: the same bits on every instruction set. a lies in
// [-127, 127].
struct GroupGemmArgs {
  const GroupFormat* format;
  const int8_t* a;     // [rows, k], padded with zeros to whole blocks
  int64_t a_stride;    // elements between rows, a multiple of 8
  const void* w;       // packed panels of the whole weight (group_packing.h), 64-byte aligned
  const float* bias;   // [columns] or null
  float* out;          // [rows, columns]
  int64_t out_stride;  // elements between rows
  int64_t rows;
  int64_t k;
  int64_t columns;  // of the whole weight; the last panel may be partly padding
  int64_t panel_begin;
  int64_t panel_end;
  const float* a_scales;           // [rows, blocks]
  int64_t a_scales_stride;         // elements between rows
  const int16_t* a_sums;           // [rows, groups], those of whole blocks
  int64_t a_sums_stride;           // elements between rows
  const float* factors = nullptr;  // [columns] or null
};

// The results of quantizing a row.
struct QuantizedSum {
  int32_t sum;  // of the integers
  bool finite;  // whether all of x is; if not, the integers are any
};

// The part [begin, end) of a KV tile that a query row sees, in tokens from the tile's start.
// begin <= end; an empty span leaves the row's state untouched, to the bit.
struct TileSpan {
  int32_t begin;
  int32_t end;
};

// The order in which keys and values of a tile lie is that in which a product reads them. `depth`
// numbers that one step of it adds up lie side by side: dimensions of keys, tokens of values.
//   keys    [ceil(head_dim / depth), kTileTokens, depth], zeros behind head_dim
//   values  [kTileTokens / depth, PadToLanes(value_dim), depth]
//
// The depth is 1 for F32 and F16, 2 for BF16 and kQuad for I8, whose keys are k + 128 as uint8.
constexpr int64_t KvDepth(DType dtype) {
  return dtype == DType::kI8 ? kQuad : dtype == DType::kBF16 ? 2 : 1;
}
// Keys and values of 4 bits lie in the order of int8 ones. The lower halves of a tile's bytes hold
// the codes of its first half, the upper halves those of the second. They are widened
// (KernelTable::widen_nibbles) and then computed with as int8, by the scale of their row.
constexpr bool HasNarrowKeys(DType dtype) { return dtype == DType::kI4; }
constexpr bool HasNarrowValues(DType dtype) { return dtype == DType::kI4 || dtype == DType::kI8I4; }
constexpr DType WidenedType(DType dtype) { return HasNarrowValues(dtype) ? DType::kI8 : dtype; }

// The integers that codes of 4 bits stand for, in units in which 2.733 standard deviations are 127.
// They are the levels that quantize normal numbers with the least squared error (Max 1960, table I,
// N = 16).
inline constexpr int8_t kNibbleLevels[16] = {-127, -96, -75, -58, -44, -31, -18, -6,
                                             6,    18,  31,  44,  58,  75,  96,  127};
// The place of the code of number i of `count`: the byte, and by how many bits it is shifted.
struct NibblePlace {
  int64_t byte;
  int shift;
};
constexpr NibblePlace NibbleAt(int64_t count, int64_t i) {
  return i < count / 2 ? NibblePlace{i, 0} : NibblePlace{i - count / 2, 4};
}

// Widens codes of 4 bits to the integers that they stand for:
//   out[i] = table[low half of nibbles[i]], out[bytes + i] = table[high half of nibbles[i]]
struct WidenNibblesArgs {
  const uint8_t* nibbles;  // [bytes], 64-byte aligned
  int64_t bytes;           // a multiple of kTileTokens
  const uint8_t* table;    // [16]
  uint8_t* out;            // [2 * bytes], 64-byte aligned
};
// Elements of a tile's keys, and the place of dimension d of token j among its keys and values.
constexpr int64_t KeyElements(int64_t depth, int64_t head_dim) {
  return (head_dim + depth - 1) / depth * depth * kTileTokens;
}
constexpr int64_t KeyAt(int64_t depth, int64_t d, int64_t j) {
  return (d / depth * kTileTokens + j) * depth + d % depth;
}
constexpr int64_t ValueAt(int64_t depth, int64_t value_dim, int64_t j, int64_t d) {
  return (j / depth * PadToLanes(value_dim) + d) * depth + j % depth;
}

// Attention state of one query row over the keys it has seen, in powers of two. Float [0] is an
// integer m, such that 2^(log2(e) score - m) was about one or less for every score. The kLaneFloats
// from [kStateLanes] on add up to the sum of these weights. Those from [kStateHeader] on are the
// sum of weight * value, padded to kLaneFloats. The rest of the header is neither read nor written.
//
// An empty state has m = -infinity and all sums 0. The total of the lanes tells it, as the score
// for which m was made adds more than a half. m rises in whole steps, so rescaling the sums is
// exact, unless they vanish.
inline constexpr int64_t kStateLanes = kLaneFloats;
inline constexpr int64_t kStateHeader = 2 * kLaneFloats;

// Folds one KV tile into the states of query rows that share a KV head:
//   score[j] = scale * sum over d of q[d] * k[d, j] + bias[j], d ascending in one chain
// where with a score_cap c the term before the bias is s = c * tanh(s / c) instead
//   m' = m, or if a score is beyond it the ceiling of the largest log2(e) score
//   w[j] = 2^(log2(e) score[j] - m'); the sums are rescaled by 2^(m - m'), and
//   lanes += w[j], values += w[j] * v[j], j ascending in one chain per element
//
// BF16: q holds bf16 numbers, and every w is rounded to bf16. Both products are therefore of bf16,
// and every instruction set multiplies the same numbers; each adds up pairs as its gemm_bf16 does.
//
// I8: keys and values have a scale for each token, k[d, j] and v[j] above being the integers:
//   score[j] = (scale * sum over d of q[d] * k[d, j]) * k_scales[j] + bias[j]
// and values adds bf16(w[j] * v_scales[j]) * v[j]; q holds bf16 numbers and lanes adds w[j].
//
// I8 with integers in q (attend_tile_i8_i8), each times q_scales[row]. The weights of a tile become
// integers, scaled by their own largest, and both sums are exact:
//   score[j] = ((scale * q_scales[row]) * sum over d of q[d] * k[d, j]) * k_scales[j] + bias[j]
//   u[j] = w[j] * v_scales[j], U the largest of the tile's that the row sees
//   values += (U / 127) * sum over j of round(u[j] * (127 / U)) * v[j], ties to even
// A tile with U < 2^-120 adds no values.
//
// Keys outside the row's span contribute exact zeros, whatever they hold. Their values are not
// read, or multiplied by zero if they are integers. A NaN score, or scale, inside the span makes
// the finished row NaN. A row whose scores are all -infinity stays empty.
struct AttendTileArgs {
  const void* q;  // [rows, q_stride] position-encoded queries: f32, or int8 in [-127, 127]
  int64_t
      q_stride;  // elements; readable (and zero) to even head_dim with BF16 and I8, kQuad in int8
  const TileSpan* spans;  // [rows]
  int64_t rows;
  const void* k;  // 64-byte aligned, as are the values
  const void* v;
  int64_t head_dim;   // of queries and keys, at most kMaxHeadDim
  int64_t value_dim;  // of values, at most kMaxHeadDim
  float scale;
  float score_cap = 0;   // positive, or 0: none
  const float* bias;     // [rows, kTileTokens], where a row sees finite or -infinity, or null: none
  float* state;          // [rows, state_stride], 64-byte aligned
  int64_t state_stride;  // elements, at least kStateHeader + PadToLanes(value_dim)
  // The next tile, whose memory is fetched while this one is computed. Null: no next tile, or no
  // values beside its keys.
  const void* next_k = nullptr;
  const void* next_v = nullptr;
  // Only if k and v are int8, [kTileTokens] each:
  const float* k_scales = nullptr;
  const float* v_scales = nullptr;
  // Only if q is int8, [rows] each:
  const float* q_scales = nullptr;
  const int32_t* q_sums = nullptr;  // of the row's integers: the keys are k + 128
};

// Copies values that are numbers of their keys, [first, head_dim), into the order in which a
// product reads values, with zeros behind them:
//   v[j, d] = k[first + d, j]
struct ValuesOfKeysArgs {
  DType dtype;    // F32, F16, BF16 or I8
  const void* k;  // 64-byte aligned
  int64_t head_dim;
  int64_t first;  // a multiple of kQuad
  void* v;        // [kTileTokens / depth, PadToLanes(head_dim - first), depth], 64-byte aligned
};

// Computes the scores of int8 queries and the keys of an int8 tile, as attend_tile_i8_i8 has them:
//   scores[j] = log2(e) * (((scale * q_scale) * sum over d of q[d] * k[d, j]) * k_scales[j] +
//   bias[j])
// Scores behind the first `keys` of the tile are -infinity.
struct ScoreTileArgs {
  const int8_t* q;        // [rows, q_stride] in [-127, 127]
  int64_t q_stride;       // elements; readable (and zero) to kQuad
  const float* q_scales;  // [rows]
  const int32_t* q_sums;  // [rows], of the row's integers
  int64_t rows;
  const uint8_t* k;       // [ceil(width / kQuad), kTileTokens, kQuad]: k + 128, 64-byte aligned
  const float* k_scales;  // [kTileTokens]
  int64_t keys;           // at most kTileTokens
  int64_t width;          // dimensions, at most kMaxHeadDim
  float scale;
  const float* bias;      // [rows, kTileTokens], or null: none
  float* scores;          // [rows, scores_stride], 64-byte aligned
  int64_t scores_stride;  // elements, at least kTileTokens
  // The next tile's keys, which are fetched meanwhile; null: none.
  const uint8_t* next_k = nullptr;
};

// The divisor of a softmax of base 2: the sum of 2^(x - maximum), for an integer maximum.
struct PowerSum {
  float maximum;
  float sum;
};

// Computes the largest score of queries over the keys of each tile, from the signs of the keys
// alone, one bit for each number. A table covers a group of four dimensions: the sum of the query's
// four numbers for each of the 16 patterns of signs.
//   scores[row, t] = the largest over keys j of tile t of
//                    sum over groups g of table[row, g][pattern(t, g, j)] - offset[row]
//
// With two tables the first one counts kSignFine times. Sums are exact. Rows of tables and a tile
// of signs are padded to kSignGroups with zeros.
inline constexpr int64_t kSignGroups = 8;
inline constexpr int32_t kSignFine = 128;
struct ScoreSignsArgs {
  const uint8_t* tables;   // [rows, groups, 16], at most 127, 64-byte aligned
  const uint8_t* fine;     // [rows, groups, 16], 64-byte aligned, or null: there is one table
  const int32_t* offsets;  // [rows]
  int64_t rows;
  int64_t groups;        // a multiple of kSignGroups, at most kMaxHeadDim / 4
  const uint8_t* signs;  // [tiles, groups / 8, kTileTokens, 4], as SignAt has it, 64-byte aligned
  int64_t tiles;
  float* scores;  // [rows, tiles]
  int64_t scores_stride;
  // Tiles that come later, as many, which are fetched meanwhile; null: none.
  const uint8_t* next = nullptr;
};
// The place of the four signs of key j in a group: bit i is that of dimension i, 1 for a positive
// number.
struct SignPlace {
  int64_t byte;
  int shift;
};
constexpr SignPlace SignAt(int64_t group, int64_t j) {
  // Four bytes of a key are one lane, which sums of bytes in fours (VPDPBUSD) stay in.
  return {.byte = (group / 8 * kTileTokens + j) * 4 + group % 4, .shift = group % 8 < 4 ? 0 : 4};
}

// Adds the scores of queries with the centre of a tile's keys, without which the keys are stored:
//   bias[row, j] += scale * sum over d of q[row, d] * centre[d], for every key j of the tile
struct CentreScoresArgs {
  const float* q;    // [rows, q_stride]
  int64_t q_stride;  // elements
  int64_t rows;
  const BF16* centre;  // [head_dim]
  int64_t head_dim;
  float scale;
  float* bias;          // [rows, bias_stride], of which kTileTokens are added to
  int64_t bias_stride;  // elements
};

// Adds weighted sums of rows to rows. It is the product of matrices of which none is packed:
//   out[i][c] += sum over j of weights[i][j] * from[j][c]
// in one chain of fused multiply-adds from out[i][c] on, j ascending: the same bits on every
// instruction set. Rows may lie anywhere, but no row of `out` overlaps another one or an input.
struct AddWeightedRowsArgs {
  const float* const* weights;  // [rows] pointers to [count]
  const float* const* from;     // [count] pointers to [columns]
  float* const* out;            // [rows] pointers to [columns]
  int64_t rows;
  int64_t count;
  int64_t columns;
};

// Products of two vectors with rows from the last to the first. Behind each row the vectors decay:
//   x_dots[j] = the sum over i of x[i] * rows[j][i]; then x[i] *= decays[j][i]; and so with y
// Products of the vectors have the same bits on every instruction set, and sums do not depend on
// the other rows.
struct DotDecayedRowsArgs {
  float* x;                    // [n]
  float* y;                    // [n]
  const float* const* rows;    // [count] pointers to [n]
  const float* const* decays;  // [count] pointers to [n]
  float* x_dots;               // [count]
  float* y_dots;               // [count]
  int64_t count;
  int64_t n;
};

// The size of the blocks that a Hadamard rotation mixes: the largest power of two that divides n.
constexpr int64_t HadamardBlock(int64_t n) { return n & -n; }
// The factor that keeps lengths: 1 / sqrt(block).
constexpr float HadamardFactor(int64_t block) {
  float factor = 1;
  for (; block >= 4; block /= 4) factor /= 2;
  return block == 2 ? factor * 0.70710678f : factor;
}

struct KernelTable {
  // Matrix products, by storage of the weight. The BF16 one takes bf16 activations, so that every
  // instruction set multiplies the same numbers; each product is exact in f32.
  void (*gemm_f32)(const GemmArgs&) noexcept;
  void (*gemm_f16)(const GemmArgs&) noexcept;
  void (*gemm_bf16)(const GemmArgs&) noexcept;
  void (*gemm_i8)(const GemmArgs&) noexcept;
  void (*gemm_groups)(const GroupGemmArgs&) noexcept;

  // The largest |x[i]|, 0 for none; NaN if an element is not finite.
  float (*largest_magnitude)(const float* x, int64_t n) noexcept;
  // out[i] = x[i] * factor to the nearest integer, ties to even, within [-127, 127]; zeros from n
  // to the next multiple of kQuad. n <= kMaxDepthI8. -128 is left out, so that a number and its
  // negative quantize alike.
  QuantizedSum (*quantize)(const float* x, float factor, int64_t n, int8_t* out) noexcept;

  // Attention, by storage of the keys and values; the last attend_tile is for int8 queries.
  void (*attend_tile_f32)(const AttendTileArgs&) noexcept;
  void (*attend_tile_f16)(const AttendTileArgs&) noexcept;
  void (*attend_tile_bf16)(const AttendTileArgs&) noexcept;
  void (*attend_tile_i8)(const AttendTileArgs&) noexcept;
  void (*attend_tile_i8_i8)(const AttendTileArgs&) noexcept;
  void (*values_of_keys)(const ValuesOfKeysArgs&) noexcept;
  void (*widen_nibbles)(const WidenNibblesArgs&) noexcept;
  void (*score_tile_i8)(const ScoreTileArgs&) noexcept;
  void (*score_signs)(const ScoreSignsArgs&) noexcept;
  // The power sum of n numbers, with the ceiling of the largest; 0 and 0 if all are -infinity.
  PowerSum (*sum_powers)(const float* x, int64_t n) noexcept;
  // into = Merge(into, from): the states of the same query over disjoint keys. Merging with an
  // empty state, on either side, returns the other to the bit.
  void (*merge_state)(const float* from, int64_t value_dim, float* into) noexcept;
  // out[d] = values[d] / total of the lanes; zeros for an empty state. out [value_dim].
  void (*finish_state)(const float* state, int64_t value_dim, float* out) noexcept;

  // Norms over one row; bias may be null:
  //   rms_norm    out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i]
  //   layer_norm  out[i] = (x[i] - mean(x)) / sqrt(var(x) + eps) * weight[i] + bias[i]
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* out) noexcept;
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, int64_t n,
                     float* out) noexcept;

  // Rotates the pairs (x[i], x[i + half]) in place by the angle whose cosine and sine are given:
  // cos, sin [half]; x [2 * half].
  void (*rotate_half)(const float* cos, const float* sin, int64_t half, float* x) noexcept;

  // Multiplies each block of HadamardBlock(n) numbers by the Hadamard matrix of that size, which is
  // symmetric and its own inverse. For strides s = 1, 2, 4, ..., block / 2 the pairs (x[i], x[i +
  // s]) become their sum and their difference. Then all numbers are multiplied by HadamardFactor.
  // The same bits on every instruction set.
  void (*hadamard)(int64_t n, float* x) noexcept;
  void (*centre_scores)(const CentreScoresArgs&) noexcept;

  void (*add_weighted_rows)(const AddWeightedRowsArgs&) noexcept;
  // out[j] = the sum over i of x[i] * rows[j][i]: x, rows [count] pointers to [n]; out [count].
  void (*dot_rows)(const float* x, const float* const* rows, int64_t count, int64_t n,
                   float* out) noexcept;
  void (*dot_decayed_rows)(const DotDecayedRowsArgs&) noexcept;

  // Elementwise over n.
  void (*add)(const float* a, const float* b, int64_t n, float* out) noexcept;
  void (*multiply)(const float* a, const float* b, int64_t n, float* out) noexcept;
  // The nearest number in [-limit, limit]; NaN stays.
  void (*clamp)(const float* x, float limit, int64_t n, float* out) noexcept;
  // out[i] = x[i] * sigmoid(gate[i])
  void (*times_sigmoid)(const float* x, const float* gate, int64_t n, float* out) noexcept;
  // out[i] = exp(-rate * log(1 + exp(x[i] + biases[i]))), for a rate above 0
  void (*decays)(const float* x, const float* biases, float rate, int64_t n, float* out) noexcept;
  void (*silu)(const float* x, int64_t n, float* out) noexcept;       // x * sigmoid(x)
  void (*gelu_erf)(const float* x, int64_t n, float* out) noexcept;   // x * Phi(x)
  void (*gelu_tanh)(const float* x, int64_t n, float* out) noexcept;  // the tanh approximation
  void (*relu)(const float* x, int64_t n, float* out) noexcept;

  // Conversions over n; to bf16 and f16 with round to nearest even (tensor/dtype.h defines them).
  void (*bf16_to_f32)(const BF16* x, int64_t n, float* out) noexcept;
  void (*f16_to_f32)(const F16* x, int64_t n, float* out) noexcept;
  void (*f32_to_bf16)(const float* x, int64_t n, BF16* out) noexcept;
  void (*f32_to_f16)(const float* x, int64_t n, F16* out) noexcept;

  // Bytes of rows and of two panels that a core should multiply at a time, in bf16 or int8. 0:
  // small blocks of rows are as fast, and the first of them fetches each panel.
  int64_t product_bytes = 0;
};

}  // namespace godwit::kernels
