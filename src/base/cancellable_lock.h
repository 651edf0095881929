// A lock that is waited for until it is free or the work is cancelled.
#pragma once

#include <chrono>
#include <mutex>

#include "base/cancel.h"

namespace godwit {

// cancel: may be null. Throws Error(kCancelled).
inline std::unique_lock<std::timed_mutex> CancellableLock(std::timed_mutex& mutex,
                                                          const CancelToken* cancel) {
  constexpr std::chrono::milliseconds kPatience{20};  // between looks at the wish to stop
  std::unique_lock lock(mutex, std::defer_lock);
  // Until a time of the system clock, not for a time: thread sanitizers of 2022 do not know the
  // wait by the steady clock.
  while (!lock.try_lock_until(std::chrono::system_clock::now() + kPatience)) {
    if (cancel != nullptr) cancel->ThrowIfCancelled();
  }
  return lock;
}

}  // namespace godwit
