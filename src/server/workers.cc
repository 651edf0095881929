#include "server/workers.h"

#include <utility>

namespace godwit::server {

Workers::Workers(int64_t threads, int64_t max_waiting)
    : threads_count_(threads), max_waiting_(max_waiting) {
  for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

bool Workers::Take(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (!HasCapacity()) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
  return true;
}

int64_t Workers::working() const {
  const std::lock_guard lock(mutex_);
  return working_;
}

int64_t Workers::waiting() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(tasks_);
}

bool Workers::has_capacity() const {
  const std::lock_guard lock(mutex_);
  return HasCapacity();
}

double Workers::stalled_ms() const {
  const std::lock_guard lock(mutex_);
  return moved_.ms();
}

void Workers::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.empty() && working_ == 0; });
}

void Workers::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      ++working_;
      moved_ = Stopwatch();
      lock.unlock();
      task();
    }
    lock.lock();
    --working_;
    moved_ = Stopwatch();
    changed_.notify_all();
  }
}

}  // namespace godwit::server
