// FillRows: the source of rows for the product of a linear layer, such as a norm or an activation.
// For operations alone: rooms above say by the function that they call which source it is.
#pragma once

#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "ops/linear_rows.h"

namespace godwit::ops {

// The part and row of a row that is counted through several parts, one after the other.
struct RowPlace {
  LinearRows* part;
  int64_t row;  // row of the part
};
inline RowPlace PlaceOfRow(std::span<LinearRows> parts, int64_t row) {
  LinearRows* part = parts.data();
  while (row >= part->rows) row -= part++->rows;
  return {part, row};
}

// Fills rows: compute(row, out) writes every row in f32, out [cols]. Rows are counted through
// several `parts`, of as many columns.
template <typename Compute>
void FillRows(const Exec& exec, std::span<LinearRows> parts, const Compute& compute) {
  Workspace::Scope scope(exec.workspace);
  const int64_t cols = parts.front().cols;
  const auto scratch = exec.workspace.Matrix<float>(exec.pool.threads(), cols);
  int64_t all = 0;
  bool any = false;
  for (LinearRows& part : parts) {
    const int64_t first = all;
    all += part.rows;
    if (part.quantization.kind != InputScale::kPerTensor) {
      any = true;
      continue;
    }
    Workspace::Scope of_part(exec.workspace);  // of the finished rows
    const auto rows = exec.workspace.Matrix<float>(part.rows, cols);
    exec.ParallelRows(part.rows, cols, [&](int64_t row) { compute(first + row, rows.Row(row)); });
    SetRows(exec, rows, part);
  }
  if (!any) return;
  exec.ParallelRows(all, cols, [&](int64_t row, int worker) {
    const RowPlace place = PlaceOfRow(parts, row);
    LinearRows& part = *place.part;
    if (part.quantization.kind == InputScale::kPerTensor) return;
    if (part.dtype == DType::kF32) {
      return compute(row, reinterpret_cast<float*>(part.Row(place.row)));
    }
    compute(row, scratch.Row(worker));
    const ProfilePart measured(exec.profile, StepPart::kQuantizing);
    SetRow(exec.kernels, scratch.Row(worker), place.row, part);
  });
}

}  // namespace godwit::ops
