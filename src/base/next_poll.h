// NextPoll: the time at which a waiting thread looks again for events that do not wake it. Such an
// event is a wish to stop from a signal handler, or a timeout.
#pragma once

#include <algorithm>
#include <chrono>

namespace godwit {

// A time of the system clock: thread sanitizers of 2022 do not know the wait by the steady one.
inline std::chrono::system_clock::time_point NextPoll(double at_most_ms = 20) {
  const std::chrono::duration<double, std::milli> wait(std::min(at_most_ms, 20.0));
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(wait);
}

}  // namespace godwit
