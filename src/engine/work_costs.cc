#include "engine/work_costs.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace godwit {
namespace {

// Rows from which attention is bound by its multiplications. Fewer read memory for each other.
constexpr int64_t kManyRows = 64;
// Depths of one cell differ by a quarter of a doubling at most.
constexpr double kClassesOfDoubling = 4;
// Lines are trusted up to this many times the depth of their deepest step.
constexpr double kFarthestDepth = 4;

double Attention(const StepWork& work, double ms_of_key, double ms_of_byte) {
  return std::max(ms_of_key * work.keys, ms_of_byte * work.bytes) + ms_of_byte * work.alone_bytes;
}

}  // namespace

const WorkCosts::Measured& WorkCosts::Cell::Median() const {
  std::array<int, kKept> order;
  for (int i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
  const auto pace = [this](int i) {
    const Measured& step = steps[static_cast<size_t>(i)];
    return step.ms / static_cast<double>(step.work.rows);
  };
  std::sort(order.begin(), order.begin() + count, [&](int a, int b) { return pace(a) < pace(b); });
  return steps[static_cast<size_t>(order[static_cast<size_t>((count - 1) / 2)])];
}

int WorkCosts::BucketOf(int64_t rows) {
  return std::min(kBuckets - 1, static_cast<int>(std::bit_width(static_cast<uint64_t>(rows))) - 1);
}

double WorkCosts::DepthOf(const StepWork& work) {
  return work.rows == 1 ? work.alone_bytes : work.keys / static_cast<double>(work.rows);
}

WorkCosts::Cell& WorkCosts::CellFor(const StepWork& work) {
  const int depth = static_cast<int>(kClassesOfDoubling * std::log2(DepthOf(work) + 1));
  Bucket& bucket = buckets_[static_cast<size_t>(BucketOf(work.rows))];
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
  Cell& cell = CellFor(work);
  cell.steps[static_cast<size_t>(cell.next)] = {work, ms};
  cell.next = (cell.next + 1) % kKept;
  cell.count = std::min(cell.count + 1, kKept);
  cell.last = ++steps_;
  lines_.reset();
}

std::optional<double> WorkCosts::Slope(int first, int end) const {
  double together = 0, spread = 0;
  for (int b = first; b < end; ++b) {
    double weight = 0, depths = 0, costs = 0;
    const auto for_cells = [&](auto take) {
      for (const Cell& cell : buckets_[static_cast<size_t>(b)]) {
        if (cell.depth < 0) continue;
        const Measured& step = cell.Median();
        const double cost = step.ms / static_cast<double>(step.work.rows);
        take(1 / (cost * cost), DepthOf(step.work), cost);
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
  if (lines_) return *lines_;
  Lines& lines = lines_.emplace();
  lines.ms_of_byte = Slope(0, 1).value_or(0);
  const auto of_many = Slope(BucketOf(kManyRows), kBuckets);
  lines.ms_of_key = of_many ? *of_many : Slope(1, BucketOf(kManyRows)).value_or(0);
  double largest = 0;
  for (const Bucket& bucket : buckets_) {
    double weight = 0, rows = 0, base = 0;
    for (const Cell& cell : bucket) {
      if (cell.depth < 0) continue;
      const Measured& step = cell.Median();
      const double w = 1 / (step.ms * step.ms);
      weight += w;
      rows += w * static_cast<double>(step.work.rows);
      base += w * (step.ms - Attention(step.work, lines.ms_of_key, lines.ms_of_byte));
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
        deepest = std::max(deepest, DepthOf(cell.Median().work));
      }
    }
    return depths >= 2 && kFarthestDepth * deepest >= DepthOf(work);
  };
  return std::ranges::all_of(steps, tells);
}

}  // namespace godwit
