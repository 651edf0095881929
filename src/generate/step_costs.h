// What a step of the model takes, by the number of its rows, as it was measured on the way.
#pragma once

#include <array>
#include <cstdint>

namespace godwit {

class StepCosts {
 public:
  // A step of more rows reads a prompt: what it takes is not remembered.
  static constexpr int64_t kMostRows = 64;

  void Record(int64_t rows, double ms);
  // Between numbers of rows that were measured along a straight line; beyond the largest as that
  // one, so that it is tried. 0: nothing is known, not of fewer rows either.
  double Ms(int64_t rows) const;
  // The largest that was measured.
  int64_t Largest() const;

 private:
  std::array<double, kMostRows + 1> ms_{};  // 0: never measured
};

}  // namespace godwit
