// The packed layout of a weight matrix: the order in which the GEMM kernels read it.
//
// A weight w [columns, k] (one row per output, as checkpoints store it) becomes panels of
// kPanelColumns outputs, one after the other. The last panel is padded with zeros:
//   F32, F16: panel[p][k][c]              = w[p * kPanelColumns + c, k]
//   BF16:     panel[p][k / 2][c][k mod 2] = w[p * kPanelColumns + c, k], odd k padded with zero
//   I8:       panel[p][k / 4][c][k mod 4] = w[p * kPanelColumns + c, k] + 128, unsigned; padded
//             with the 128 of zero
//
// VPDPBUSD multiplies unsigned by signed. The weights are the unsigned operand, so that -128 needs
// no special case. 128 times the sum of the activations is taken off again. One row and many rows
// read the same bytes in the same order. The layout is the same for every instruction set.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace godwit::kernels {

// Panels that `columns` outputs take.
constexpr int64_t PanelCount(int64_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns;
}

// Elements of one column that stand side by side in a panel.
constexpr int64_t PanelDepth(DType dtype) {
  return dtype == DType::kBF16 ? 2 : dtype == DType::kI8 ? kQuad : 1;
}

// Bytes of one panel of depth k. dtype: F32, F16, BF16 or I8.
constexpr int64_t PanelBytes(DType dtype, int64_t k) {
  const int64_t depth = PanelDepth(dtype);
  return (k + depth - 1) / depth * depth * kPanelColumns * static_cast<int64_t>(SizeOf(dtype));
}

// Packs one panel. rows[c] points at the k elements of output c, at any alignment, or is null for
// padding. panel: PanelBytes(dtype, k), 64-byte aligned.
void PackPanel(DType dtype, const void* const rows[kPanelColumns], int64_t k, void* panel) noexcept;

}  // namespace godwit::kernels
