#include "quant/channel_maxima.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace godwit::quant {

std::vector<float> LargestInputs(const LinearTensors& linear, const Calibration& calibration,
                                 const Scalings& scalings) {
  const auto seen = calibration.find(ModuleName(linear));
  if (seen == calibration.end()) return {};
  std::vector<float> largest = seen->second.largest;
  const auto& s = FindScaling(scalings, PartsOf(linear).front().name).column_factors;
  for (size_t i = 0; i < s.size(); ++i) largest[i] = std::fabs(largest[i] / s[i]);
  return largest;
}

std::vector<float> LargestWeights(const Exec& exec, const LinearTensors& linear,
                                  const Scalings& scalings) {
  const int64_t columns = linear.inputs();
  const int threads = exec.pool.threads();
  Workspace::Scope scope(exec.workspace);
  const auto scratch = exec.workspace.Matrix<float>(threads, columns);
  // Each worker has a row: a maximum does not depend on which worker saw which values.
  std::vector<std::vector<float>> maxima(threads, std::vector<float>(columns));
  for (const MatrixPart& part : PartsOf(linear)) {
    const Scaling& scaling = FindScaling(scalings, part.name);
    exec.ParallelRows(part.rows, columns, [&](int64_t row, int worker) {
      const auto values = scratch.RowSpan(worker);
      ReadRow(part, scaling, row, values);
      std::vector<float>& largest = maxima[worker];
      bool finite = true;
      for (size_t i = 0; i < values.size(); ++i) {
        finite &= std::isfinite(values[i]);
        largest[i] = std::max(largest[i], std::fabs(values[i]));
      }
      if (!finite) {
        Throw(ErrorKind::kUnsupported, "tensor {} holds NaN or infinity", part.name);
      }
    });
  }
  for (const std::vector<float>& of_worker : maxima) {
    for (size_t i = 0; i < of_worker.size(); ++i) {
      maxima[0][i] = std::max(maxima[0][i], of_worker[i]);
    }
  }
  return maxima[0];
}

}  // namespace godwit::quant
