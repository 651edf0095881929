// WorkCosts: the time of a step by its work, learned from steps that were measured.
//
// A step of r rows takes base(r) and the time of its attention. Rows that attend together take a
// time for each key that they meet. Few rows behind a long text wait for memory instead: they take
// a time for each byte that they look at. Rows that attend alone do, too. base(r) runs in straight
// lines between the numbers of rows that were measured. A few rows cost little more than one.
//
// Measurements lie in cells of similar rows and similar depth. A cell remembers its last nine and
// counts as their mean without the slowest. An interruption then counts for nothing. Many count, as
// on a busy machine, where a median would pass over them. New costs replace old ones. Lines through
// the cells weigh errors in percent of the time. Allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "attention/core/step_work.h"

namespace godwit {

class WorkCosts {
 public:
  // Records a step of one text alone. The first step of one row and the first of more do not
  // count: they find caches cold and memory untouched. Nor does a step of rows of both kinds.
  void Record(const StepWork& work, double ms);

  // The time of a step; nothing if no step of one row, or none of more for more, was measured.
  std::optional<double> Ms(const StepWork& work) const;
  // The sum over steps.
  std::optional<double> Ms(std::span<const StepWork> steps) const;

  // Whether measured steps are near enough to tell what the steps cost. They have as many rows, or
  // 64, and two depths. One of these is at least a quarter of the step's.
  bool Tells(std::span<const StepWork> steps) const;

  // The number of steps that were recorded and count.
  int64_t steps() const { return steps_; }

 private:
  static constexpr int kBuckets = 13, kCells = 24, kKept = 9;
  struct Measured {
    double rows = 0, keys = 0, bytes = 0, alone_bytes = 0, ms = 0;

    double RowMs() const { return ms / rows; }
    // The depth of a row: bytes of one alone, keys of one of several.
    double Depth() const { return rows < 2 ? alone_bytes : keys / rows; }
  };
  // Measured steps of similar rows and depth.
  struct Cell {
    int depth = -1;  // class of depth; -1: unused
    int64_t last = 0;
    int count = 0;  // of kept steps
    int next = 0;   // place of the next one, the oldest's
    std::array<Measured, kKept> steps;
    // The mean of its steps, without the slowest of several.
    Measured Mean() const;
  };
  using Bucket = std::array<Cell, kCells>;
  struct Lines {
    double ms_of_key = 0, ms_of_byte = 0;
    int knots = 0;
    std::array<double, kBuckets> rows{}, base_ms{};
  };

  static int BucketOf(int64_t rows);
  static Measured With(const StepWork& work, double ms);
  Cell& CellFor(const Measured& step);
  // The slope of a row's time over its depth, common to the lines of buckets [first, end). Nothing
  // if none has two depths.
  std::optional<double> Slope(int first, int end) const;
  const Lines& lines() const;

  std::array<Bucket, kBuckets> buckets_;
  int64_t steps_ = 0;
  bool began_reading_ = false, began_answering_ = false;
  mutable Lines lines_;  // of all cells, if they are known
  mutable bool lines_known_ = false;
};

}  // namespace godwit
