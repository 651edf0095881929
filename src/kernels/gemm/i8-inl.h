// The int8 matrix product over packed panels: the loops around the register tile. Include after one
// of vec/*.h.
//
// The register tiles are those of gemm/tile-inl.h: a vector of sums is a vector of int32 in the
// bits of floats. They rest in `out` until the depth is through, then one pass scales them. What a
// step multiplies is an operand type, as there, and beside it says how it reads the rows:
//   Prepare   brings `steps` quads of `rows` rows into the form of Operand::A
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

// Quads of one pass over the rows: their part of a panel stays in the second-level cache while the
// row tiles go by, and the prepared rows of a tile stay in the first.
constexpr int64_t kPassQuads = 256;

// One row of sums, in the bits of floats, to the row of `out` that they stand for (kernel_table.h,
// GemmArgs). sums may be out. columns <= kPanelColumns.
void ScaleSums(const GemmArgs& args, int64_t row, int64_t column, int64_t columns,
               const float* sums, float* out) {
  const int32_t correction = -128 * args.a_sums[row];
  const Vec a_scale = Set1(args.a_scales[row]);
  const float* w_scales = args.w_scales + column;
  const float* bias = args.bias == nullptr ? nullptr : args.bias + column;
  int64_t c = 0;
  for (; c + kLanes <= columns; c += kLanes) {
    const Vec dot = IntsToFloats(AddToInts(Load(sums + c), correction));
    const Vec x = Mul(Mul(dot, Load(w_scales + c)), a_scale);
    Store(out + c, bias == nullptr ? x : Add(x, Load(bias + c)));
  }
  if (const int64_t n = columns - c; n > 0) {
    const Vec dot = IntsToFloats(AddToInts(LoadFirst(sums + c, n), correction));
    const Vec x = Mul(Mul(dot, LoadFirst(w_scales + c, n)), a_scale);
    StoreFirst(out + c, bias == nullptr ? x : Add(x, LoadFirst(bias + c, n)), n);
  }
}

// One pass of one tile of rows: sums [rows, kPanelColumns] += the products of `steps` quads.
template <class Operand>
GODWIT_INLINE void AddQuads(const GemmArgs& args, const uint8_t* panel, int64_t row, int64_t rows,
                            int64_t step, int64_t steps, float* sums, int64_t sums_stride) {
  typename Operand::Rows buffer;
  const auto* a = static_cast<const int8_t*>(args.a) + row * args.a_stride + step * kQuad;
  RunColumns<Operand>(rows, kPanelColumns,
                      {.a = Operand::Prepare(a, args.a_stride, rows, steps, buffer),
                       .a_stride = Operand::Stride(args.a_stride),
                       .w = panel + step * kPanelColumns * kQuad,
                       .w_stride = kPanelColumns * kQuad,
                       .steps = steps,
                       .resume = step > 0,
                       .bias = nullptr,
                       .out = sums,
                       .out_stride = sums_stride});
}

template <class Operand>
void FullPanelI8(const GemmArgs& args, const uint8_t* panel, int64_t quads, int64_t column) {
  int64_t step = 0;
  do {
    const int64_t steps = quads - step < kPassQuads ? quads - step : kPassQuads;
    for (int64_t row = 0; row < args.rows; row += kTileRows) {
      const int64_t rows = args.rows - row < kTileRows ? args.rows - row : kTileRows;
      float* out = args.out + row * args.out_stride + column;
      AddQuads<Operand>(args, panel, row, rows, step, steps, out, args.out_stride);
      if (step + steps < quads) continue;
      for (int64_t r = 0; r < rows; ++r) {
        ScaleSums(args, row + r, column, kPanelColumns, out + r * args.out_stride,
                  out + r * args.out_stride);
      }
    }
    step += steps;
  } while (step < quads);
}

// The last panel where the weight does not fill it: the sums rest in a buffer.
template <class Operand>
void PartialPanelI8(const GemmArgs& args, const uint8_t* panel, int64_t quads, int64_t column) {
  alignas(64) float sums[kTileRows * kPanelColumns];
  for (int64_t row = 0; row < args.rows; row += kTileRows) {
    const int64_t rows = args.rows - row < kTileRows ? args.rows - row : kTileRows;
    int64_t step = 0;
    do {
      const int64_t steps = quads - step < kPassQuads ? quads - step : kPassQuads;
      AddQuads<Operand>(args, panel, row, rows, step, steps, sums, kPanelColumns);
      step += steps;
    } while (step < quads);
    for (int64_t r = 0; r < rows; ++r) {
      ScaleSums(args, row + r, column, args.columns - column, sums + r * kPanelColumns,
                args.out + (row + r) * args.out_stride + column);
    }
  }
}

template <class Operand>
void GemmI8(const GemmArgs& args) {
  const int64_t quads = (args.k + kQuad - 1) / kQuad;
  for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
    const auto* panel = static_cast<const uint8_t*>(args.w) + p * quads * kPanelColumns * kQuad;
    const int64_t column = p * kPanelColumns;
    if (args.columns - column < kPanelColumns) {
      PartialPanelI8<Operand>(args, panel, quads, column);
    } else {
      FullPanelI8<Operand>(args, panel, quads, column);
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
