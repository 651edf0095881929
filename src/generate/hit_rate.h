// How many of the guesses of a kind come true, as they are seen to.
#pragma once

namespace godwit {

class HitRate {
 public:
  void Count(bool hit) {
    hits_ += hit ? 1 : 0;
    tries_ += 1;
    if (tries_ < kRemembered) return;
    hits_ /= 2;
    tries_ /= 2;
  }
  // assumed: before there were any; it counts as a few of them.
  double Chance(double assumed) const { return (hits_ + kAssumed * assumed) / (tries_ + kAssumed); }

 private:
  // Of more tries than so many the old ones fade.
  static constexpr double kAssumed = 4, kRemembered = 512;
  double hits_ = 0, tries_ = 0;
};

}  // namespace godwit
