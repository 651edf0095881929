#include "engine/work_costs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace godwit {
namespace {

// Rows from which attention is bound by its multiplications. Fewer read memory for each other.
constexpr int64_t kManyRows = 64;
// Depths of one cell differ by a quarter of a doubling at most.
constexpr double kClassesOfDoubling = 4;
// Lines are trusted up to this many times the depth of their deepest step.
constexpr double kFarthestDepth = 4;

double Attention(const auto& work, double ms_of_key, double ms_of_byte) {
  return std::max(ms_of_key * work.keys, ms_of_byte * work.bytes) + ms_of_byte * work.alone_bytes;
}

}  // namespace

WorkCosts::Measured WorkCosts::Cell::Mean() const {
  const auto end = steps.begin() + count;
  const auto slowest = std::ranges::max_element(steps.begin(), end, {}, &Measured::RowMs);
  Measured mean;
  for (auto step = steps.begin(); step != end; ++step) {
    if (step == slowest && count > 1) continue;
    mean.rows += step->rows;
    mean.keys += step->keys;
    mean.bytes += step->bytes;
    mean.alone_bytes += step->alone_bytes;
    mean.ms += step->ms;
  }
  const double counted = std::max(1, count - 1);
  for (double* const sum : {&mean.rows, &mean.keys, &mean.bytes, &mean.alone_bytes, &mean.ms}) {
    *sum /= counted;
  }
  return mean;
}

int WorkCosts::BucketOf(int64_t rows) {
  return std::min(kBuckets - 1, static_cast<int>(std::bit_width(static_cast<uint64_t>(rows))) - 1);
}

WorkCosts::Measured WorkCosts::With(const StepWork& work, double ms) {
  return {.rows = static_cast<double>(work.rows),
          .keys = work.keys,
          .bytes = work.bytes,
          .alone_bytes = work.alone_bytes,
          .ms = ms};
}

WorkCosts::Cell& WorkCosts::CellFor(const Measured& step) {
  const int depth = static_cast<int>(kClassesOfDoubling * std::log2(step.Depth() + 1));
  Bucket& bucket = buckets_[static_cast<size_t>(BucketOf(static_cast<int64_t>(step.rows)))];
  const auto same = std::ranges::find(bucket, depth, &Cell::depth);
  if (same != bucket.end()) return *same;
  Cell& oldest = *std::ranges::min_element(bucket, {}, &Cell::last);  // unused ones first
  oldest = Cell();
  oldest.depth = depth;
  return oldest;
}

void WorkCosts::Record(const StepWork& work, double ms) {
  if (work.rows < 1 || !(ms > 0)) return;
  const bool alone = work.rows == 1;
  if (!alone && work.alone_bytes > 0) return;
  bool& began = alone ? began_answering_ : began_reading_;
  if (!began) {
    began = true;
    return;
  }
  const Measured step = With(work, ms);
  Cell& cell = CellFor(step);
  cell.steps[static_cast<size_t>(cell.next)] = step;
  cell.next = (cell.next + 1) % kKept;
  cell.count = std::min(cell.count + 1, kKept);
  cell.last = ++steps_;
  lines_known_ = false;
}

std::optional<double> WorkCosts::Slope(int first, int end) const {
  double together = 0, spread = 0;
  for (int b = first; b < end; ++b) {
    double weight = 0, depths = 0, costs = 0;
    const auto for_cells = [&](auto take) {
      for (const Cell& cell : buckets_[static_cast<size_t>(b)]) {
        if (cell.depth < 0) continue;
        const Measured step = cell.Mean();
        const double cost = step.RowMs();
        take(1 / (cost * cost), step.Depth(), cost);
      }
    };
    for_cells([&](double w, double depth, double cost) {
      weight += w;
      depths += w * depth;
      costs += w * cost;
    });
    if (weight == 0) continue;
    for_cells([&](double w, double depth, double cost) {
      const double from_middle = depth - depths / weight;
      spread += w * from_middle * from_middle;
      together += w * from_middle * (cost - costs / weight);
    });
  }
  if (!(spread > 0)) return std::nullopt;
  return std::max(0.0, together / spread);
}

const WorkCosts::Lines& WorkCosts::lines() const {
  if (std::exchange(lines_known_, true)) return lines_;
  Lines& lines = lines_ = Lines();
  lines.ms_of_byte = Slope(0, 1).value_or(0);
  const auto of_many = Slope(BucketOf(kManyRows), kBuckets);
  lines.ms_of_key = of_many ? *of_many : Slope(1, BucketOf(kManyRows)).value_or(0);
  double largest = 0;
  for (const Bucket& bucket : buckets_) {
    double weight = 0, rows = 0, base = 0;
    for (const Cell& cell : bucket) {
      if (cell.depth < 0) continue;
      const Measured step = cell.Mean();
      const double w = 1 / (step.ms * step.ms);
      weight += w;
      rows += w * step.rows;
      base += w * (step.ms - Attention(step, lines.ms_of_key, lines.ms_of_byte));
    }
    if (weight == 0) continue;
    largest = std::max(largest, base / weight);  // more rows take no less
    const auto at = static_cast<size_t>(lines.knots++);
    lines.rows[at] = rows / weight;
    lines.base_ms[at] = largest;
  }
  return lines;
}

std::optional<double> WorkCosts::Ms(const StepWork& work) const {
  const Lines& l = lines();
  if (l.knots == 0) return std::nullopt;
  const auto rows = static_cast<double>(work.rows);
  const bool has_alone = l.rows[0] < 2;
  if (work.rows == 1 ? !has_alone : l.knots == (has_alone ? 1 : 0)) return std::nullopt;
  const auto last = static_cast<size_t>(l.knots - 1);
  double base = 0;
  if (rows <= l.rows[0]) {
    base = l.base_ms[0] * rows / l.rows[0];
  } else if (rows >= l.rows[last]) {
    // On through the last two, which holds for a step's own time. A row takes no longer than those
    // measured, and not far less.
    const double in_proportion = l.base_ms[last] * rows / l.rows[last];
    const size_t before = last == 0 ? last : last - 1;
    const double slope =
        last == 0 ? 0 : (l.base_ms[last] - l.base_ms[before]) / (l.rows[last] - l.rows[before]);
    base = std::clamp(l.base_ms[last] + slope * (rows - l.rows[last]), 0.7 * in_proportion,
                      in_proportion);
  } else {
    size_t i = 1;
    while (l.rows[i] < rows) ++i;
    const double part = (rows - l.rows[i - 1]) / (l.rows[i] - l.rows[i - 1]);
    base = l.base_ms[i - 1] + part * (l.base_ms[i] - l.base_ms[i - 1]);
  }
  return base + Attention(work, l.ms_of_key, l.ms_of_byte);
}

std::optional<double> WorkCosts::Ms(std::span<const StepWork> steps) const {
  double sum = 0;
  for (const StepWork& work : steps) {
    const auto ms = Ms(work);
    if (!ms) return std::nullopt;
    sum += *ms;
  }
  return sum;
}

bool WorkCosts::Tells(std::span<const StepWork> steps) const {
  const auto tells = [this](const StepWork& work) {
    const int64_t enough = std::min(work.rows, kManyRows);
    int depths = 0;
    double deepest = 0;
    for (int b = BucketOf(enough); b < (work.rows == 1 ? 1 : kBuckets); ++b) {
      for (const Cell& cell : buckets_[static_cast<size_t>(b)]) {
        if (cell.depth < 0) continue;
        ++depths;
        deepest = std::max(deepest, cell.Mean().Depth());
      }
    }
    return depths >= 2 && kFarthestDepth * deepest >= With(work, 0).Depth();
  };
  return std::ranges::all_of(steps, tells);
}

}  // namespace godwit
