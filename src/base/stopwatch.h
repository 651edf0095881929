// Milliseconds since its construction.
#pragma once

#include <chrono>

namespace godwit {

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// A clock, in milliseconds from some moment on, for code that decides by measured times: a test
// passes one of its own.
using NowMs = double (*)();
inline double SteadyMs() {
  static const Stopwatch since;
  return since.ms();
}

}  // namespace godwit
