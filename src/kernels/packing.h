// The packed layout of a weight matrix: the order in which the GEMM kernels read it.
//
// A weight w [columns, k] (one row per output, as checkpoints store it) becomes panels of
// kPanelColumns outputs, one after the other, zero-padded in the last panel:
//   F32, F16: panel[p][k][c]              = w[p * kPanelColumns + c, k]
//   BF16:     panel[p][k / 2][c][k mod 2] = w[p * kPanelColumns + c, k], odd k padded with zero
// One row and many rows read the same bytes in the same order. The layout is the same for every
// instruction set.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace godwit::kernels {

// Panels that `columns` outputs take.
constexpr int64_t PanelCount(int64_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns;
}

// Bytes of one panel of depth k. dtype: F32, F16 or BF16.
constexpr int64_t PanelBytes(DType dtype, int64_t k) {
  const int64_t depth = dtype == DType::kBF16 ? (k + 1) / 2 * 2 : k;
  return depth * kPanelColumns * static_cast<int64_t>(SizeOf(dtype));
}

// Packs one panel. rows[c] points at the k elements of output c, at any alignment, or is null for
// padding. panel: PanelBytes(dtype, k), 64-byte aligned.
void PackPanel(DType dtype, const void* const rows[kPanelColumns], int64_t k, void* panel) noexcept;

}  // namespace godwit::kernels
