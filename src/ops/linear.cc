#include "ops/linear.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.h"
#include "kernels/packing.h"

namespace godwit::ops {
namespace {

using kernels::GemmArgs;

using Gemm = void (*)(const GemmArgs&) noexcept;

Gemm SelectGemm(const kernels::KernelTable& kernels, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kernels.gemm_f32;
    case DType::kF16:
      return kernels.gemm_f16;
    case DType::kBF16:
      return kernels.gemm_bf16;
    case DType::kI8:
      return kernels.gemm_i8;
    default:
      Throw(ErrorKind::kUnsupported, "no matrix product for weights stored as {}", Name(dtype));
  }
}

// Refuses NaN and infinity: int8 rows share scales, so NaN would become a number or spread to all.
void CheckFinite(const LinearRows& x, const Weight& w) {
  const int64_t blocks = x.groups == nullptr ? 1 : BlockCount(*x.groups, x.cols);
  for (int64_t i = 0; i < x.rows * blocks; ++i) {
    if (!std::isnan(x.scales[i])) continue;
    Throw(ErrorKind::kUnsupported,
          "{} linear layer {} [{}, {}]: row {} of its {} input rows holds NaN or infinity",
          x.groups == nullptr ? "int8" : "grouped", w.name.empty() ? "without a name" : w.name,
          w.outputs, w.inputs, i / blocks, x.rows);
  }
}

// Multiplies some rows from `row` on by the panels [panel, panel_end) of w.
void MultiplyGroups(const Exec& exec, const LinearRows& x, const Weight& w, int64_t row,
                    int64_t panel, int64_t panel_end, MatrixView<float> out) {
  const int64_t blocks = BlockCount(w.groups, w.inputs);
  exec.kernels.gemm_groups({.format = &w.groups,
                            .a = reinterpret_cast<const int8_t*>(x.Row(row)),
                            .a_stride = x.stride,
                            .w = w.panels.data(),
                            .bias = w.bias.empty() ? nullptr : w.bias.data(),
                            .out = out.data,
                            .out_stride = out.stride,
                            .rows = out.rows,
                            .k = w.inputs,
                            .columns = out.cols,
                            .panel_begin = panel,
                            .panel_end = panel_end,
                            .a_scales = x.scales + row * blocks,
                            .a_scales_stride = blocks,
                            .a_sums = x.group_sums.Row(row),
                            .a_sums_stride = x.group_sums.stride,
                            .factors = w.scales.empty() ? nullptr : w.scales.data()});
}

// Subtracts the offsets' contribution from the outputs [begin, end) of a block of rows.
void SubtractOffsets(const float* offsets, const Weight& w, int64_t begin, int64_t end,
                     MatrixView<float> out) {
  for (int64_t row = 0; row < out.rows; ++row) {
    float* to = out.Row(row);
    for (int64_t i = begin; i < end; ++i) to[i] -= offsets[row] * w.row_sums[i];
  }
}

void Check(const Exec& exec, const LinearRows& x, const Weight& w) {
  const bool grouped = w.dtype == DType::kGrouped;
  if (!grouped) (void)SelectGemm(exec.kernels, w.dtype);
  assert(x.dtype == (w.dtype == DType::kF16 ? DType::kF32 : grouped ? DType::kI8 : w.dtype));
  assert(grouped == (x.groups != nullptr) && (!grouped || *x.groups == w.groups));
  assert(std::ranges::equal(x.order, w.input_order));
  if (x.dtype == DType::kI8) CheckFinite(x, w);
}

// Multiplies the rows [row, row_end) of x by the panels [panel, panel_end) of w.
void Multiply(const Exec& exec, const LinearRows& x, const Weight& w, int64_t row, int64_t row_end,
              int64_t panel, int64_t panel_end, MatrixView<float> all) {
  const MatrixView<float> out = all.Rows(row, row_end);
  if (w.dtype == DType::kGrouped) return MultiplyGroups(exec, x, w, row, panel, panel_end, out);
  const bool quantized = x.dtype == DType::kI8;
  SelectGemm(exec.kernels, w.dtype)({.a = x.Row(row),
                                     .a_stride = x.stride,
                                     .w = w.panels.data(),
                                     .bias = w.bias.empty() ? nullptr : w.bias.data(),
                                     .out = out.data,
                                     .out_stride = out.stride,
                                     .rows = out.rows,
                                     .k = w.inputs,
                                     .columns = out.cols,
                                     .panel_begin = panel,
                                     .panel_end = panel_end,
                                     .a_scales = quantized ? x.scales + row : nullptr,
                                     .a_sums = quantized ? x.sums + row : nullptr,
                                     .w_scales = w.scales.data()});
  if (x.offsets != nullptr) {
    SubtractOffsets(x.offsets + row, w, panel * kernels::kPanelColumns,
                    std::min(out.cols, panel_end * kernels::kPanelColumns), out);
  }
  if (x.outlier_counts == nullptr) return;
  for (int64_t i = row; i < row_end; ++i) {
    const auto count = static_cast<size_t>(x.outlier_counts[i]);
    AddOutliers(x.outliers.RowSpan(i).first(count), w, panel, panel_end, all.Row(i));
  }
}

constexpr int64_t kFewestProductRows = 32;  // of a product whose time is not memory's

constexpr int64_t CeilDiv(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Whether many rows share a panel while a task prefetches its next one.
bool SharesPanels(const Exec& exec, const Product& product) {
  return exec.kernels.product_bytes > 0 && product.w->dtype != DType::kGrouped;
}

// The most rows multiplied together, which stay in the second-level cache. Blocks are even.
int64_t MostBlockRows(const Exec& exec, const Product& product) {
  constexpr int64_t kSmallBlock = 96;
  if (!SharesPanels(exec, product)) return kSmallBlock;
  const Weight& w = *product.w;
  const int64_t row_bytes = w.inputs * static_cast<int64_t>(SizeOf(w.dtype));
  const int64_t rows = product.x->rows;
  if (rows <= kSmallBlock || row_bytes == 0) return kSmallBlock;
  const int64_t most = exec.kernels.product_bytes / row_bytes - 2 * kernels::kPanelColumns;
  if (most <= kSmallBlock) return kSmallBlock;
  return CeilDiv(CeilDiv(rows, CeilDiv(rows, most)), 16) * 16;
}

// Rows multiplied together: `most`, or less where threads have few tasks each, of which the last
// would leave many idle. Smaller blocks read panels more often.
int64_t BlockRows(int64_t rows, int64_t most, int64_t panels, int64_t threads) {
  constexpr int64_t kManyTasks = 8, kFewestRows = 32;  // a thread, in a block
  const int64_t fewest = CeilDiv(rows, most);
  if (panels * fewest >= kManyTasks * threads) return most;
  const auto longest = [&](int64_t block) {  // rows of one panel that the busiest thread multiplies
    return CeilDiv(panels * CeilDiv(rows, block), threads) * block;
  };
  int64_t best = most;
  for (int64_t blocks = fewest; blocks <= 2 * fewest; ++blocks) {
    const int64_t block = CeilDiv(CeilDiv(rows, blocks), 16) * 16;
    if (block < kFewestRows) break;
    if (20 * longest(block) <= 19 * longest(best)) best = block;
  }
  return best;
}

// Panels of a task, each of which is prefetched during the one before. Threads differ in speed, so
// each should have several tasks, and the last ones should leave few threads idle.
int64_t PanelsPerTask(int64_t panels, int64_t blocks, int64_t threads) {
  int64_t of_task = std::clamp<int64_t>(panels * blocks / (4 * threads), 1, 8);
  const auto leaves_idle = [&] {
    const int64_t turns = CeilDiv(CeilDiv(panels, of_task) * blocks, threads);
    return 19 * turns * of_task * threads > 20 * panels * blocks;
  };
  while (of_task > 1 && leaves_idle()) --of_task;
  return of_task;
}

// The tasks of a product: blocks of rows by ranges of panels, the rows of a range side by side. Few
// rows take several panels a task, because waking threads would cost more. They wait for memory,
// which is prefetched within a task.
struct Cut {
  Cut(const Exec& exec, const Product& product, int64_t panels_of_few_rows)
      : panels(kernels::PanelCount(product.out.cols)), block_rows(MostBlockRows(exec, product)) {
    const int64_t rows = product.x->rows, threads = exec.pool.threads();
    if (rows >= kFewestProductRows) block_rows = BlockRows(rows, block_rows, panels, threads);
    blocks = CeilDiv(rows, block_rows);
    if (rows < kFewestProductRows) {
      panels_per_task = panels_of_few_rows;
    } else if (SharesPanels(exec, product)) {
      panels_per_task = PanelsPerTask(panels, blocks, threads);
    }
    tasks = CeilDiv(panels, panels_per_task) * blocks;
  }

  int64_t panels, block_rows, blocks = 0, panels_per_task = 1, tasks = 0;
};

// The products of copies of the rows, as exec.filter leaves them.
void LinearOfFiltered(const Exec& exec, std::span<const Product> products, StepPart part) {
  Workspace::Scope scope(exec.workspace);
  Exec plain = exec;
  plain.filter = nullptr;
  for (const Product& product : products) {
    const LinearRows& x = *product.x;
    if (x.dtype != DType::kF32 || x.rows == 0) {
      Linear(plain, {&product, 1}, part);
      continue;
    }
    const auto copy = exec.workspace.Matrix<float>(x.rows, x.cols);
    for (int64_t i = 0; i < x.rows; ++i) {
      const auto* row = reinterpret_cast<const float*>(x.Row(i));
      std::copy(row, row + x.cols, copy.Row(i));
    }
    (*exec.filter)(*product.w, copy);
    LinearRows filtered = x;
    filtered.data = reinterpret_cast<std::byte*>(copy.data);
    filtered.stride = copy.stride;
    const Product of_copy{&filtered, product.w, product.out};
    Linear(plain, {&of_copy, 1}, part);
  }
}

}  // namespace

void Linear(const Exec& exec, MatrixView<const float> x, const Weight& w, MatrixView<float> out) {
  assert(x.cols == w.inputs);
  if (w.dtype == DType::kF32 || w.dtype == DType::kF16) {
    // The kernel reads the rows in place; a product never writes to its input.
    auto* data = reinterpret_cast<std::byte*>(const_cast<float*>(x.data));
    return Linear(
        exec,
        {.dtype = DType::kF32, .data = data, .rows = x.rows, .cols = x.cols, .stride = x.stride}, w,
        out);
  }
  Workspace::Scope scope(exec.workspace);
  LinearRows rows = NewLinearRows(exec, w, x.rows);
  SetRows(exec, x, rows);
  Linear(exec, rows, w, out);
}

void Linear(const Exec& exec, const LinearRows& x, const Weight& w, MatrixView<float> out) {
  const Product product{&x, &w, out};
  Linear(exec, {&product, 1});
}

void Linear(const Exec& exec, std::span<const Product> products, StepPart part) {
  if (exec.filter != nullptr) return LinearOfFiltered(exec, products, part);
  const ProfilePart measured(exec.profile, part);
  int64_t panels = 0;
  for (const Product& product : products) {
    const LinearRows& x = *product.x;
    if (exec.observer != nullptr && x.rows > 0) (*exec.observer)(*product.w, x);
    const Weight& w = *product.w;
    const MatrixView<float>& out = product.out;
    assert(x.cols == w.inputs && x.rows == out.rows && out.cols <= w.outputs);
    assert(out.cols == w.outputs || out.cols % kernels::kPanelColumns == 0);
    Check(exec, x, w);
    panels += kernels::PanelCount(out.cols);
  }
  const int64_t panels_of_few_rows = std::clamp<int64_t>(panels / (4 * exec.pool.threads()), 1, 16);
  int64_t tasks = 0;
  for (const Product& product : products) tasks += Cut(exec, product, panels_of_few_rows).tasks;
  exec.Parallel(tasks, [&](int64_t task) {
    const Product* product = products.data();
    Cut cut(exec, *product, panels_of_few_rows);
    while (task >= cut.tasks) {
      task -= cut.tasks;
      cut = Cut(exec, *++product, panels_of_few_rows);
    }
    const int64_t panel = task / cut.blocks * cut.panels_per_task;
    const int64_t row = task % cut.blocks * cut.block_rows;
    Multiply(exec, *product->x, *product->w, row, std::min(row + cut.block_rows, product->x->rows),
             panel, std::min(cut.panels, panel + cut.panels_per_task), product->out);
  });
}

}  // namespace godwit::ops
