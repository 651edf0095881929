// HitRate: the acceptance rate of draft tokens of one kind, from observed hits.
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
  // assumed: the rate before there were any tries; it counts as a few of them.
  double Chance(double assumed) const { return (hits_ + kAssumed * assumed) / (tries_ + kAssumed); }

 private:
  // The weight of the assumed rate, and the number of tries after which old ones fade.
  static constexpr double kAssumed = 4, kRemembered = 512;
  double hits_ = 0, tries_ = 0;
};

}  // namespace godwit
