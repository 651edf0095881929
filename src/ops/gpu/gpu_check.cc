#include "ops/gpu/gpu_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/error.h"

namespace godwit::ops {

void RequireNumbers(const Exec& exec, MatrixView<const float> results) {
  const ProfilePart measured(exec.profile, StepPart::kQuantizing);
  std::atomic<bool> found = false;
  exec.ParallelRows(results.rows, results.cols, [&](int64_t row) {
    const auto is_nan = [](float x) { return std::isnan(x); };
    if (std::ranges::any_of(results.RowSpan(row), is_nan)) found = true;
  });
  if (!found) return;
  Throw(ErrorKind::kUnsupported,
        "the rows that a GPU quantized for its int8 or grouped linear layers held NaN or infinity");
}

}  // namespace godwit::ops
