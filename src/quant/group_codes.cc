#include "quant/group_codes.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "quant/quantize_matrix.h"

namespace godwit::quant {
namespace {

constexpr float kLowest = -8, kHighest = 7;

// Trials of the code for the largest magnitude: some are clipped.
constexpr int kTrials = 13;
constexpr float kFirstTrial = 6.5f, kTrialStep = 0.25f;

// Trials with zero points. Each takes a part of the range of weights, from the least to the
// largest. The zero point lies up to kFarthestZero from the one that the part implies.
constexpr float kFirstPart = 0.7f, kPartStep = 0.025f;
constexpr int kFarthestZero = 1;

float ToInteger4(float x) { return ToInteger(x, kLowest, kHighest); }

void Pack(std::span<const int8_t> integers, std::byte* to) {
  for (size_t i = 0; i < integers.size(); ++i) {
    to[i / 2] |= static_cast<std::byte>((integers[i] + 8) << (i % 2 * 4));
  }
}

// Some rows of the matrix, in the scratch of one thread.
class RowsInWork {
 public:
  static constexpr int64_t kRows = RoundingFeedback::kLanes;

  RowsInWork(int64_t columns, const Grouping& grouping, DType stored)
      : columns_(columns),
        group_(grouping.size),
        has_zeros_(grouping.zeros),
        stored_(stored),
        row_(columns),
        integers_(kRows * columns),
        scales_(kRows * (columns / group_)),
        zeros_(scales_.size()) {}

  std::span<float> row() { return row_; }
  std::span<const int8_t> integers(int64_t lane) const {
    return std::span(integers_).subspan(lane * columns_, columns_);
  }
  std::span<const float> scales(int64_t lane) const { return Of(lane, std::span(scales_)); }
  std::span<const int8_t> zeros(int64_t lane) const { return Of(lane, std::span(zeros_)); }

  // Computes the scales of row() as row `lane`.
  void Scale(int64_t lane, std::span<const float> importance) {
    for (int64_t g = 0; g < columns_ / group_; ++g) {
      const auto w = std::span<const float>(row_).subspan(g * group_, group_);
      const auto weights = importance.subspan(g * group_, group_);
      const int64_t i = lane * (columns_ / group_) + g;
      if (has_zeros_) {
        const ScaleAndZero found = GroupScaleAndZero(w, weights, stored_);
        scales_[i] = found.scale;
        zeros_[i] = found.zero;
      } else {
        scales_[i] = GroupScale(w, weights, stored_);
      }
    }
  }

  // Sets the integer of x in row `lane`, and returns its dequantized value.
  float Round(int64_t lane, int64_t column, float x) {
    const int64_t group = lane * (columns_ / group_) + column / group_;
    int8_t& integer = integers_[lane * columns_ + column];
    integer = ToInt4(x, scales_[group], zeros_[group]);
    return scales_[group] * static_cast<float>(integer - zeros_[group]);
  }

 private:
  template <typename T>
  std::span<const T> Of(int64_t lane, std::span<const T> numbers) const {
    const int64_t groups = columns_ / group_;
    return numbers.subspan(lane * groups, groups);
  }

  const int64_t columns_, group_;
  const bool has_zeros_;
  const DType stored_;
  std::vector<float> row_;
  std::vector<int8_t> integers_;  // [kRows, columns]
  std::vector<float> scales_;     // [kRows, groups]
  std::vector<int8_t> zeros_;     // [kRows, groups]
};

}  // namespace

float GroupScale(std::span<const float> w, std::span<const float> importance, DType stored) {
  float largest = 0;
  for (const float x : w) largest = std::max(largest, std::abs(x));
  if (largest == 0) return RoundScale(0, stored);
  float best = largest / kHighest, best_gain = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const float inverse = (kFirstTrial + kTrialStep * static_cast<float>(trial)) / largest;
    float xq = 0, qq = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      const float q = ToInteger4(w[i] * inverse);
      xq += importance[i] * (w[i] / largest) * q;
      qq += importance[i] * q * q;
    }
    if (!(qq > 0) || !(xq > 0)) continue;
    const float gain = xq * (xq / qq);
    if (gain > best_gain) best = xq / qq * largest, best_gain = gain;
  }
  return RoundScale(best, stored);
}

ScaleAndZero GroupScaleAndZero(std::span<const float> w, std::span<const float> importance,
                               DType stored) {
  float least = 0, largest = 0;
  for (const float x : w) least = std::min(least, x), largest = std::max(largest, x);
  if (least == largest) return {.scale = RoundScale(0, stored)};
  ScaleAndZero best{.scale = (largest - least) / (kHighest - kLowest)};
  float best_gain = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const float part = kFirstPart + kPartStep * static_cast<float>(trial);
    const float inverse = (kHighest - kLowest) / (part * (largest - least));
    const float middle = ToInteger4(kLowest - part * least * inverse);
    for (int shift = -kFarthestZero; shift <= kFarthestZero; ++shift) {
      const float zero = std::clamp(middle + static_cast<float>(shift), kLowest, kHighest);
      float xq = 0, qq = 0;
      for (size_t i = 0; i < w.size(); ++i) {
        const float q = ToInteger(w[i] * inverse, kLowest - zero, kHighest - zero);
        xq += importance[i] * (w[i] * inverse) * q;
        qq += importance[i] * q * q;
      }
      if (!(qq > 0) || !(xq > 0)) continue;
      // The error of these integers at their best scale is the sum of squares less the gain.
      const float gain = xq * (xq / qq) / (inverse * inverse);
      if (gain > best_gain) {
        best = {.scale = xq / qq / inverse, .zero = static_cast<int8_t>(zero)};
        best_gain = gain;
      }
    }
  }
  best.scale = RoundScale(best.scale, stored);
  return best;
}

int8_t ToInt4(float x, float scale, int8_t zero) {
  const auto shift = static_cast<float>(zero);
  return static_cast<int8_t>(ToInteger(x / scale, kLowest - shift, kHighest - shift) + shift);
}

void GroupedMatrix::Integers(int64_t row, std::span<int8_t> out) const {
  const std::byte* from = packed.data() + row * packed_columns();
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<int8_t>((static_cast<int>(from[i / 2]) >> (i % 2 * 4) & 15) - 8);
  }
}

void GroupedMatrix::Values(int64_t row, std::span<float> out) const {
  std::vector<int8_t> integers(out.size());
  Integers(row, integers);
  const float* of_groups = scales.data() + row * (columns / group);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t g = i / static_cast<size_t>(group);
    const int zero = zeros.empty() ? 0 : zeros[static_cast<size_t>(row * (columns / group)) + g];
    out[i] = of_groups[g] * static_cast<float>(integers[i] - zero);
  }
}

GroupedMatrix QuantizeInGroups(const Exec& exec, std::string_view name, int64_t rows,
                               int64_t columns, const Grouping& grouping, DType stored,
                               const RoundingFeedback* feedback,
                               FunctionRef<void(int64_t row, std::span<float> out)> read) {
  const int64_t groups = columns / grouping.size;
  GroupedMatrix matrix{.rows = rows, .columns = columns, .group = grouping.size};
  matrix.packed.resize(rows * matrix.packed_columns());
  matrix.scales.resize(rows * groups);
  if (grouping.zeros) matrix.zeros.resize(matrix.scales.size());
  const std::vector<float> alike(feedback == nullptr ? columns : 0, 1.0f);
  const auto importance = feedback == nullptr ? std::span(alike) : feedback->importance();
  constexpr int64_t kRows = RowsInWork::kRows;
  exec.Parallel((rows + kRows - 1) / kRows, [&](int64_t task) {
    const int64_t begin = task * kRows, count = std::min(kRows, rows - begin);
    RowsInWork work(columns, grouping, stored);
    const int64_t fed_back = feedback == nullptr ? 0 : columns * kRows;
    std::vector<float> w(fed_back), errors(fed_back);  // [columns, kRows]
    for (int64_t lane = 0; lane < count; ++lane) {
      read(begin + lane, work.row());
      if (std::isnan(exec.kernels.largest_magnitude(work.row().data(), columns))) {
        Throw(ErrorKind::kUnsupported, "tensor {} holds NaN or infinity, which cannot be quantized",
              name);
      }
      work.Scale(lane, importance);
      for (int64_t i = 0; i < columns; ++i) {
        const float x = work.row()[i];
        if (feedback == nullptr) {
          work.Round(lane, i, x);
        } else {
          w[i * kRows + lane] = x;
        }
      }
    }
    if (feedback != nullptr) {
      feedback->Run(w, errors, [&](int64_t column, float* values) {
        for (int64_t lane = 0; lane < count; ++lane) {
          values[lane] = work.Round(lane, column, values[lane]);
        }
      });
    }
    for (int64_t lane = 0; lane < count; ++lane) {
      Pack(work.integers(lane), matrix.packed.data() + (begin + lane) * matrix.packed_columns());
      const int64_t place = (begin + lane) * groups;
      std::ranges::copy(work.scales(lane), matrix.scales.begin() + place);
      if (grouping.zeros) std::ranges::copy(work.zeros(lane), matrix.zeros.begin() + place);
    }
  });
  return matrix;
}

GroupedMatrix QuantizeInGroups(const Exec& exec, const MatrixPart& part, const Scaling& scaling,
                               const Grouping& grouping, const RoundingFeedback* feedback) {
  return QuantizeInGroups(
      exec, part.name, part.rows, part.columns, grouping, ScaleType(part.dtype()), feedback,
      [&](int64_t row, std::span<float> out) { ReadRow(part, scaling, row, out); });
}

}  // namespace godwit::quant
