#include "ops/streams.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace godwit::ops {
namespace {

// The mean of squares, in double and in the order of columns.
double MeanSquare(std::span<const float> row) {
  double sum = 0;
  for (const float x : row) sum += double{x} * double{x};
  return sum / static_cast<double>(row.size());
}

}  // namespace

void Tanh(const Exec& exec, MatrixView<float> x) {
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    for (float& number : x.RowSpan(row)) number = std::tanh(number);
  });
}

void PredictStreams(const Exec& exec, MatrixView<const float> streams,
                    MatrixView<const float> coefficients, MatrixView<float> predicted) {
  const auto n = static_cast<int64_t>(std::lround(std::sqrt(coefficients.cols)));
  const int64_t width = streams.cols / n;
  assert(n * n == coefficients.cols && n * width == streams.cols);
  assert(predicted.cols == streams.cols && predicted.rows == streams.rows);
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(streams.rows, n * streams.cols, [&](int64_t row) {
    const float* const from = streams.Row(row);
    for (int64_t j = 0; j < n; ++j) {
      float* const to = predicted.Row(row) + j * width;
      std::fill_n(to, width, 0.0f);
      for (int64_t i = 0; i < n; ++i) {
        const float factor = coefficients.Row(row)[j * n + i];
        for (int64_t d = 0; d < width; ++d) to[d] += factor * from[i * width + d];
      }
      for (int64_t d = 0; d < width; ++d) to[d] += from[j * width + d];
    }
  });
}

void CorrectStreams(const Exec& exec, MatrixView<const float> activated,
                    MatrixView<const float> coefficients, int64_t active,
                    MatrixView<float> streams) {
  const int64_t n = coefficients.cols, width = activated.cols;
  assert(n * width == streams.cols && 0 <= active && active < n);
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(streams.rows, streams.cols, [&](int64_t row) {
    float* const of_row = streams.Row(row);
    for (int64_t d = 0; d < width; ++d) {
      const float innovation = activated.Row(row)[d] - of_row[active * width + d];
      for (int64_t j = 0; j < n; ++j) {
        of_row[j * width + d] += innovation * (coefficients.Row(row)[j] + 1);
      }
    }
  });
}

void MatchMagnitude(const Exec& exec, MatrixView<const float> like, MatrixView<float> x) {
  constexpr double kLeast = 1e-5;
  assert(like.rows == x.rows && like.cols == x.cols);
  const ProfilePart measured(exec.profile, StepPart::kNorms);
  exec.ParallelRows(x.rows, 2 * x.cols, [&](int64_t row) {
    const double wanted = MeanSquare(like.RowSpan(row));
    const double found = std::max(kLeast, MeanSquare(x.RowSpan(row)));
    const auto factor = static_cast<float>(std::sqrt(wanted / found));
    for (float& number : x.RowSpan(row)) number *= factor;
  });
}

void ScaleColumns(const Exec& exec, MatrixView<const float> x, std::span<const float> factors,
                  MatrixView<float> out) {
  assert(std::ssize(factors) == x.cols && out.cols == x.cols && out.rows == x.rows);
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    for (int64_t d = 0; d < x.cols; ++d) out.Row(row)[d] = x.Row(row)[d] * factors[d];
  });
}

void CutBelow(const Exec& exec, float deviations, MatrixView<float> x) {
  const ProfilePart measured(exec.profile, StepPart::kActivation);
  exec.ParallelRows(x.rows, 3 * x.cols, [&](int64_t row) {
    const auto of_row = x.RowSpan(row);
    double sum = 0, squares = 0;
    for (const float number : of_row) sum += double{number};
    const double mean = sum / static_cast<double>(x.cols);
    for (const float number : of_row) {
      squares += (double{number} - mean) * (double{number} - mean);
    }
    const double deviation = std::sqrt(squares / static_cast<double>(x.cols));
    const auto cutoff = static_cast<float>(mean + deviation * double{deviations});
    for (float& number : of_row) number = std::max(0.0f, number - cutoff);
  });
}

}  // namespace godwit::ops
