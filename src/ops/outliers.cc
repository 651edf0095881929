#include "ops/outliers.h"

#include <algorithm>
#include <cmath>

#include "kernels/packing.h"

namespace godwit::ops {

using kernels::kPanelColumns;
using kernels::kQuad;

RowQuantization QuantizeRowWithoutOutliers(const kernels::KernelTable& kernels, const float* x,
                                           float threshold, int64_t n, int8_t* out,
                                           Outlier* outliers, int64_t* count) noexcept {
  *count = 0;
  const float largest_of_all = kernels.largest_magnitude(x, n);
  if (!(largest_of_all >= threshold)) {  // or NaN
    return QuantizeRowWithLargest(kernels, x, largest_of_all, n, out);
  }
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(x[i]);
    if (magnitude < threshold) {
      largest = std::max(largest, magnitude);
    } else {
      outliers[(*count)++] = {.column = static_cast<int32_t>(i), .value = x[i]};
    }
  }
  RowQuantization result = QuantizeRowWithLargest(kernels, x, largest, n, out);
  for (const Outlier& outlier : std::span(outliers, *count)) {
    result.sum -= out[outlier.column];
    out[outlier.column] = 0;
  }
  return result;
}

void AddOutliers(std::span<const Outlier> outliers, const Weight& w, int64_t panel_begin,
                 int64_t panel_end, float* out) noexcept {
  if (outliers.empty()) return;
  const int64_t panel_bytes = kernels::PanelBytes(DType::kI8, w.inputs);
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t first = panel * kPanelColumns;
    const int64_t columns = std::min(kPanelColumns, w.outputs - first);
    const float* scales = w.scales.data() + first;
    float sums[kPanelColumns] = {};
    for (const auto& [column, value] : outliers) {
      const std::byte* weights = w.panels.data() + panel * panel_bytes +
                                 column / kQuad * kPanelColumns * kQuad + column % kQuad;
      for (int64_t c = 0; c < columns; ++c) {
        const int integer = std::to_integer<int>(weights[c * kQuad]) - 128;
        sums[c] += value * (scales[c] * static_cast<float>(integer));
      }
    }
    for (int64_t c = 0; c < columns; ++c) out[first + c] += sums[c];
  }
}

}  // namespace godwit::ops
