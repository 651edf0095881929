// StepCosts: the time of a step of the model by its number of rows, measured during generation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace godwit {

class StepCosts {
 public:
  // The most rows that are measured: a larger step reads a prompt.
  static constexpr int64_t kMaxRows = 64;

  // Makes costs as if they had been measured: rows up to kMaxRows with their ms, straight lines
  // between.
  static StepCosts AlongLines(const std::map<int64_t, double>& ms_of_rows);

  // Records a step. It counts from the second time on, with the smaller of both: one may have been
  // interrupted.
  void Record(int64_t rows, double ms);
  // The time of so many rows. An unmeasured number has the time of the next smaller measured one,
  // so that it is tried. 0: nothing is known, not of fewer rows either.
  double Ms(int64_t rows) const;
  // The largest number of rows that was measured.
  int64_t Largest() const;

 private:
  std::array<double, kMaxRows + 1> ms_{};     // 0: not known
  std::array<double, kMaxRows + 1> first_{};  // the first measurement, 0: none
};

}  // namespace godwit
