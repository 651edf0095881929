// LinearRows: rows of activations in the form in which the kernels of one weight read them. They
// are f32 for F32 and F16, rounded to bf16 for BF16, quantized for I8, and in blocks for a grouped
// weight.
//
// An operation before a linear layer (a norm, an activation) writes its rows through FillRows
// (fill_rows.h).
// Rounding and quantizing thus need no pass of their own over the whole matrix. The code that
// computes the rows need not know the storage of the weight. The bits are those of f32 rows given
// to Linear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "ops/outliers.h"
#include "tensor/dtype.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

struct LinearRows {
  DType dtype;      // F32, BF16 or I8
  std::byte* data;  // [rows, cols], padded with zeros to what the kernels read
  int64_t rows;
  int64_t cols;
  int64_t stride;  // elements
  // The quantization of I8 rows: a row is about its scale * integers - its offset. With `groups`,
  // the scales are those of its blocks, [rows, BlockCount], and `group_sums` takes the place of
  // `sums`.
  InputQuantization quantization = {};
  float* scales = nullptr;   // [rows]; NaN: the row is not finite
  int32_t* sums = nullptr;   // [rows], of the integers
  float* offsets = nullptr;  // [rows], scale * zero point; null: none, or the weight's bias has it
  // Outliers: elements in whose place the integers have zeros. There is memory for all elements, so
  // that scratch memory is the same in every step.
  MatrixView<Outlier> outliers = {};    // [rows, cols], each row's first
  int64_t* outlier_counts = nullptr;    // [rows]; null: the quantization has no outliers
  const GroupFormat* groups = nullptr;  // the weight's, which outlives the rows; null: none
  std::span<const int32_t> order = {};  // Weight::input_order, the order of the integers
  MatrixView<int16_t> group_sums = {};  // [rows, those of whole blocks]

  std::byte* Row(int64_t row) { return data + RowOffset(row); }
  const std::byte* Row(int64_t row) const { return data + RowOffset(row); }

 private:
  int64_t RowOffset(int64_t row) const {
    return row * stride * static_cast<int64_t>(SizeOf(dtype));
  }
};

// Rows for `w`, not yet filled, in the workspace.
LinearRows NewLinearRows(const Exec& exec, const Weight& w, int64_t rows);

// Rounds or quantizes one row. x [cols] is not the row itself. Not if it is kPerTensor.
void SetRow(const kernels::KernelTable& kernels, const float* x, int64_t row, LinearRows& out);

// All rows: x [rows, cols].
void SetRows(const Exec& exec, MatrixView<const float> x, LinearRows& out);

}  // namespace godwit::ops
