// What a step of the model takes, by the number of its rows, as it was measured on the way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace godwit {

class StepCosts {
 public:
  // A step of more rows reads a prompt: what it takes is not remembered.
  static constexpr int64_t kMostRows = 64;

  // As if they had been measured: of rows up to kMostRows their ms, between them straight lines.
  static StepCosts AlongLines(const std::map<int64_t, double>& ms_of_rows);

  // Counts from the second time on, when the smaller of both is known: one may have been
  // interrupted.
  void Record(int64_t rows, double ms);
  // Of a number of rows that was not measured as of the next smaller that was, so that it is tried.
  // 0: nothing is known, not of fewer rows either.
  double Ms(int64_t rows) const;
  // The largest that was measured.
  int64_t Largest() const;

 private:
  std::array<double, kMostRows + 1> ms_{};     // 0: not known
  std::array<double, kMostRows + 1> first_{};  // what was measured first, 0: nothing
};

}  // namespace godwit
