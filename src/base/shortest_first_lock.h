// A lock for work that is done one piece at a time, of which small pieces go first.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "base/cancel.h"
#include "base/next_poll.h"

namespace godwit {

// Thread-safe. It must outlive its turns.
class ShortestFirstLock {
 public:
  class Turn {
   public:
    explicit Turn(ShortestFirstLock& line) : line_(&line) {}
    Turn(Turn&& other) noexcept : line_(std::exchange(other.line_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (line_ != nullptr) line_->End();
    }

   private:
    ShortestFirstLock* line_;
  };

  // Waits for a turn. A piece that costs n lets pieces go first that cost nothing and come up to n
  // pieces later. Large ones thus wait for many small ones, and not for ever. cancel: may be null.
  // Throws Error(kCancelled) for one that has to wait.
  Turn Wait(int64_t cost, const CancelToken* cancel) {
    std::unique_lock lock(mutex_);
    const int64_t number = arrivals_++;
    if (!busy_ && waiting_.empty()) {
      busy_ = true;
      return Turn(*this);
    }
    std::condition_variable changed;
    const auto mine = waiting_.emplace(std::pair(number + cost, number), &changed).first;
    while (busy_ || mine != waiting_.begin()) {
      if (cancel != nullptr && cancel->cancelled()) {
        waiting_.erase(mine);
        WakeFirst();
        cancel->ThrowIfCancelled();
      }
      changed.wait_until(lock, NextPoll());
    }
    waiting_.erase(mine);
    busy_ = true;
    return Turn(*this);
  }

  // The number of pieces that wait.
  size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  void End() {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    WakeFirst();
  }
  void WakeFirst() {
    if (!busy_ && !waiting_.empty()) waiting_.begin()->second->notify_one();
  }

  mutable std::mutex mutex_;  // of what follows
  bool busy_ = false;
  int64_t arrivals_ = 0;
  // By when it is their turn, and when they came.
  std::map<std::pair<int64_t, int64_t>, std::condition_variable*> waiting_;
};

}  // namespace godwit
