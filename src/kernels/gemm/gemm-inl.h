// The matrix product over packed panels of floats: the loops around the register tile. Include
// after one of vec/*.h.
#pragma once

#include "kernels/gemm/rows-inl.h"

namespace godwit::kernels {
namespace {

// Steps of one pass over the rows: this much of a panel stays in the second-level cache while the
// row tiles go by. Between passes the sums rest in `out`, which leaves them as they were.
constexpr int64_t kPassBytes = 128 * 1024;

template <class Operand>
void FullPanel(const GemmArgs& args, const typename Operand::W* panel, int64_t column) {
  constexpr int64_t kStepElements = kPanelColumns * Operand::kDepth;
  constexpr int64_t kStepBytes = kStepElements * int64_t{sizeof(typename Operand::W)};
  const int64_t steps = (args.k + Operand::kDepth - 1) / Operand::kDepth;
  const int64_t pass_steps = args.rows <= kTileRows ? steps : kPassBytes / kStepBytes;
  int64_t step = 0;
  do {
    const int64_t left = steps - step;
    const int64_t now = left < pass_steps ? left : pass_steps;
    for (int64_t row = 0; row < args.rows; row += kTileRows) {
      const int64_t rows = args.rows - row < kTileRows ? args.rows - row : kTileRows;
      RunRows<Operand>({.data = static_cast<const typename Operand::Source*>(args.a) +
                                row * args.a_stride + step * Operand::kDepth,
                        .stride = args.a_stride,
                        .rows = rows},
                       {.w = panel + step * kStepElements,
                        .w_stride = kStepElements,
                        .steps = now,
                        .resume = step > 0,
                        .bias = now == left && args.bias != nullptr ? args.bias + column : nullptr,
                        .out = args.out + row * args.out_stride + column,
                        .out_stride = args.out_stride});
    }
    step += now;
  } while (step < steps);
}

// The last panel where the weight does not fill it: through a buffer, so that the tile needs no
// masks.
template <class Operand>
void PartialPanel(const GemmArgs& args, const typename Operand::W* panel, int64_t column) {
  constexpr int64_t kStepElements = kPanelColumns * Operand::kDepth;
  const int64_t columns = args.columns - column;
  alignas(64) float buffer[kTileRows * kPanelColumns];
  for (int64_t row = 0; row < args.rows; row += kTileRows) {
    const int64_t rows = args.rows - row < kTileRows ? args.rows - row : kTileRows;
    RunRows<Operand>(
        {.data = static_cast<const typename Operand::Source*>(args.a) + row * args.a_stride,
         .stride = args.a_stride,
         .rows = rows},
        {.w = panel,
         .w_stride = kStepElements,
         .steps = (args.k + Operand::kDepth - 1) / Operand::kDepth,
         .out = buffer,
         .out_stride = kPanelColumns});
    for (int64_t r = 0; r < rows; ++r) {
      float* out = args.out + (row + r) * args.out_stride + column;
      for (int64_t c = 0; c < columns; ++c) {
        const float sum = buffer[r * kPanelColumns + c];
        out[c] = args.bias != nullptr ? sum + args.bias[column + c] : sum;
      }
    }
  }
}

template <class Operand>
void Gemm(const GemmArgs& args) {
  const int64_t steps = (args.k + Operand::kDepth - 1) / Operand::kDepth;
  const auto* w = static_cast<const typename Operand::W*>(args.w);
  for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
    const auto* panel = w + p * steps * kPanelColumns * Operand::kDepth;
    const int64_t column = p * kPanelColumns;
    if (args.columns - column < kPanelColumns) {
      PartialPanel<Operand>(args, panel, column);
    } else {
      FullPanel<Operand>(args, panel, column);
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
