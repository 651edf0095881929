// The int8 matrix product over packed panels: the loops around the register tile. Include after one
// of vec/*.h.
//
// The register tiles are those of gemm/tile-inl.h: a vector of sums is a vector of int32 in the
// bits of floats, which are scaled once the depth is through.
#pragma once

#include "kernels/gemm/rows-inl.h"

namespace godwit::kernels {
namespace {

// Quads of one pass over the rows: their part of a panel, 256 KiB, stays in the second-level cache
// while the row tiles go by. Between passes the sums rest in `out`, within one in a buffer: lines
// of `out` come from far, as rows of it lie in the same few cache sets.
constexpr int64_t kPassQuads = 1024;

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

// Sums of one tile of rows, [rows, kPanelColumns] with `stride` floats between rows.
struct TileSums {
  float* data;
  int64_t stride;
};

template <class Operand>
void PanelI8(const GemmArgs& args, const uint8_t* panel, int64_t quads, int64_t column) {
  const int64_t columns =
      args.columns - column < kPanelColumns ? args.columns - column : kPanelColumns;
  // A panel that does not fill `out` has no place there for its sums.
  const bool deep = quads > kPassQuads && columns == kPanelColumns;
  const int64_t pass_quads = deep ? kPassQuads : quads;
  alignas(64) float buffer[kTileRows * kPanelColumns];
  int64_t begin = 0;
  do {
    const int64_t end = quads - begin < pass_quads ? quads : begin + pass_quads;
    for (int64_t row = 0; row < args.rows; row += kTileRows) {
      const int64_t rows = args.rows - row < kTileRows ? args.rows - row : kTileRows;
      float* out = args.out + row * args.out_stride + column;
      const TileSums sums = deep ? TileSums{out, args.out_stride} : TileSums{buffer, kPanelColumns};
      RunRows<Operand>(
          {.data = static_cast<const int8_t*>(args.a) + row * args.a_stride + begin * kQuad,
           .stride = args.a_stride,
           .rows = rows},
          {.w = panel + begin * kPanelColumns * kQuad,
           .w_stride = kPanelColumns * kQuad,
           .steps = end - begin,
           .resume = begin > 0,
           .out = sums.data,
           .out_stride = sums.stride});
      for (int64_t r = 0; end == quads && r < rows; ++r) {
        ScaleSums(args, row + r, column, columns, sums.data + r * sums.stride,
                  out + r * args.out_stride);
      }
    }
    begin = end;
  } while (begin < quads);
}

template <class Operand>
void GemmI8(const GemmArgs& args) {
  const int64_t quads = (args.k + kQuad - 1) / kQuad;
  for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
    const auto* panel = static_cast<const uint8_t*>(args.w) + p * quads * kPanelColumns * kQuad;
    PanelI8<Operand>(args, panel, quads, p * kPanelColumns);
  }
}

}  // namespace
}  // namespace godwit::kernels
