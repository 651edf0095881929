// Workers: threads for tasks that wait, and a queue with a limit. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include "base/stopwatch.h"

namespace godwit::server {

class Workers {
 public:
  // max_waiting: tasks beyond those that run.
  Workers(int64_t threads, int64_t max_waiting);
  // Runs the tasks that were taken, then ends.
  ~Workers();

  // Takes a task, which must throw nothing. False: there are too many.
  bool Take(std::function<void()> task);

  int64_t working() const;
  int64_t waiting() const;
  // Whether Take would accept another task.
  bool has_capacity() const;
  // The time since a task last began or ended.
  double stalled_ms() const;
  // Waits until no task is left.
  void Wait();

 private:
  void Work();
  bool HasCapacity() const { return std::ssize(tasks_) + working_ < threads_count_ + max_waiting_; }

  int64_t threads_count_, max_waiting_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  int64_t working_ = 0;
  Stopwatch moved_;
  bool stop_ = false;
  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace godwit::server
