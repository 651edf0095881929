// A lock that is waited for until it is free or the work is cancelled.
#pragma once

#include <mutex>

#include "base/cancel.h"
#include "base/next_poll.h"

namespace godwit {

// cancel: may be null. Throws Error(kCancelled).
inline std::unique_lock<std::timed_mutex> CancellableLock(std::timed_mutex& mutex,
                                                          const CancelToken* cancel) {
  std::unique_lock lock(mutex, std::defer_lock);
  while (!lock.try_lock_until(NextPoll())) {
    if (cancel != nullptr) cancel->ThrowIfCancelled();
  }
  return lock;
}

}  // namespace godwit
