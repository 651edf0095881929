#include "ops/simulation.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "kernels/dispatch.h"
#include "ops/activation.h"
#include "ops/linear.h"
#include "ops/pack_weight.h"

namespace godwit::ops {
namespace {

using kernels::KernelTable;

// Rows that share a scale become what int8 leaves of them, as QuantizeRow rounds a single one.
// scratch [cols, padded to quads].
void Round(const KernelTable& kernels, MatrixView<float> rows, int8_t* scratch) {
  float largest = 0;
  for (int64_t row = 0; row < rows.rows && !std::isnan(largest); ++row) {
    const float magnitude = kernels.largest_magnitude(rows.Row(row), rows.cols);
    if (!(magnitude <= largest)) largest = magnitude;
  }
  const bool tiny = largest < 0x1p-120f;  // as in QuantizeRow
  for (int64_t row = 0; row < rows.rows; ++row) {
    float* const x = rows.Row(row);
    if (tiny || std::isnan(largest)) {
      std::fill_n(x, rows.cols, tiny ? 0.0f : largest);
      continue;
    }
    kernels.quantize(x, 127.0f / largest, rows.cols, scratch);
    for (int64_t i = 0; i < rows.cols; ++i)
      x[i] = largest / 127.0f * static_cast<float>(scratch[i]);
  }
}

int64_t PaddedToQuads(int64_t n) {
  return (n + kernels::kQuad - 1) / kernels::kQuad * kernels::kQuad;
}

// The outputs of every part in runs that share a scale: where each ends.
std::vector<int64_t> ScaleEnds(std::span<const int64_t> part_outputs, int64_t outputs_per_scale) {
  std::vector<int64_t> ends;
  int64_t begin = 0;
  for (const int64_t outputs : part_outputs) {
    const int64_t step = outputs_per_scale == 0 ? outputs : outputs_per_scale;
    for (int64_t i = 0; i < outputs; i += step) ends.push_back(begin + std::min(i + step, outputs));
    begin += outputs;
  }
  return ends;
}

Weight RoundWeight(ThreadPool& pool, std::span<const int64_t> ends, const Weight& weight) {
  std::vector<float> values(static_cast<size_t>(weight.outputs * weight.inputs));
  const MatrixView<float> rows{values.data(), weight.outputs, weight.inputs, weight.inputs};
  const KernelTable& kernels = *kernels::BestIsa().table;
  pool.Run(std::ssize(ends), [&](int64_t i, int /*worker*/) {
    const auto run = static_cast<size_t>(i);
    const int64_t begin = run == 0 ? 0 : ends[run - 1];
    for (int64_t row = begin; row < ends[run]; ++row) UnpackRow(weight, row, rows.Row(row));
    std::vector<int8_t> scratch(static_cast<size_t>(PaddedToQuads(weight.inputs)));
    Round(kernels, rows.Rows(begin, ends[run]), scratch.data());
  });
  return PackWeight(
      pool, DType::kF32, weight.outputs, weight.inputs,
      [&](int64_t output) -> const void* { return rows.Row(output); }, DType::kF32);
}

// LLM.int8(): moves the columns with outliers from x to the result, which has zeros elsewhere.
MatrixView<float> TakeOutliers(const Exec& exec, float outlier, MatrixView<float> x) {
  const auto taken = exec.workspace.Matrix<float>(x.rows, x.cols);
  const auto has_outlier = exec.workspace.Matrix<bool>(1, x.cols).RowSpan(0);
  std::ranges::fill(has_outlier, false);
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t i = 0; i < x.cols; ++i) {
      has_outlier[static_cast<size_t>(i)] |= std::fabs(x.Row(row)[i]) >= outlier;
    }
  }
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    for (int64_t i = 0; i < x.cols; ++i) {
      taken.Row(row)[i] =
          has_outlier[static_cast<size_t>(i)] ? std::exchange(x.Row(row)[i], 0.0f) : 0.0f;
    }
  });
  return taken;
}

void RoundInputs(const Exec& exec, bool share_scale, MatrixView<float> x) {
  const int64_t padded = PaddedToQuads(x.cols);
  if (share_scale) {
    return Round(exec.kernels, x, exec.workspace.Matrix<int8_t>(1, padded).data);
  }
  const auto scratch = exec.workspace.Matrix<int8_t>(exec.pool.threads(), padded);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row, int worker) {
    Round(exec.kernels, x.Rows(row, row + 1), scratch.Row(worker));
  });
}

}  // namespace

const SimulatedScheme& FindSimulatedScheme(std::string_view name) {
  for (const SimulatedScheme& scheme : kSimulatedSchemes) {
    if (scheme.name == name) return scheme;
  }
  Throw(ErrorKind::kInput, "expected one of {} as scheme to simulate, found {}",
        NameList(kSimulatedSchemes, &SimulatedScheme::name), Quote(name));
}

Weight Simulate(ThreadPool& pool, const SimulatedScheme& scheme,
                std::span<const int64_t> part_outputs, Weight weight) {
  assert(weight.dtype == DType::kF32);
  Weight simulated{.outputs = weight.outputs,
                   .inputs = weight.inputs,
                   .panels = {},
                   .bias = {},
                   .name = weight.name};
  auto parts = std::make_shared<SimulatedWeight>();
  parts->scheme = scheme;
  parts->rounded = RoundWeight(pool, ScaleEnds(part_outputs, scheme.outputs_per_scale), weight);
  parts->rounded.bias = std::exchange(weight.bias, {});
  if (scheme.outlier > 0) parts->exact = std::move(weight);
  simulated.simulated = std::move(parts);
  return simulated;
}

void SimulatedLinear(const Exec& exec, const LinearInput& x, const SimulatedWeight& w,
                     MatrixView<float> out) {
  assert(x.dtype == DType::kF32);
  Workspace::Scope scope(exec.workspace);
  const auto rounded = exec.workspace.Matrix<float>(x.rows, x.cols);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    std::copy_n(reinterpret_cast<const float*>(x.Row(row)), x.cols, rounded.Row(row));
  });
  if (w.scheme.outlier == 0) {
    RoundInputs(exec, w.scheme.inputs_share_scale, rounded);
    return Linear(exec, rounded, w.rounded, out);
  }
  const auto outliers = TakeOutliers(exec, w.scheme.outlier, rounded);
  RoundInputs(exec, w.scheme.inputs_share_scale, rounded);
  const auto product = exec.workspace.Matrix<float>(out.rows, out.cols);
  Linear(exec, rounded, w.rounded, out);
  Linear(exec, outliers, w.exact, product);
  Add(exec, product, out);
}

}  // namespace godwit::ops
