// ThreadPool: fork-join over a fixed set of threads, the only source of parallelism in the engine.
//
// Run() splits work into tasks that any worker may take in any order. A task must write only what
// belongs to it; results then do not depend on the number of threads. Worker 0 is the calling
// thread, 1..threads()-1 are the pool's own; `worker` indexes per-worker scratch memory. Run() may
// be called from several threads (the calls take turns) and from inside a body (runs inline, as the
// same worker). It allocates nothing. Idle workers spin for some microseconds, then sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace godwit {

class ThreadPool {
 public:
  static constexpr int kMaxThreads = 1024;

  // The usual argument is AvailableCores() of base/cores.h. Throws Error if `threads` is not in
  // [1, kMaxThreads] or the system refuses to start a thread.
  // cpus: worker i > 0 is pinned to cpus[i], the calling thread is left alone (base/numa.h); empty:
  // nobody is pinned.
  explicit ThreadPool(int threads, const std::vector<int>& cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(task, worker) once for each task in [0, tasks) and returns when all are done.
  // If bodies throw, tasks not yet begun are dropped and the first exception is rethrown here.
  void Run(int64_t tasks, FunctionRef<void(int64_t task, int worker)> body);

 private:
  void WorkerLoop(int worker);
  void TakeTasks(int worker) noexcept;
  void Stop();

  // The job. Written by Run() while no worker is inside, read by workers that are.
  const FunctionRef<void(int64_t, int)>* body_ = nullptr;
  int64_t tasks_ = 0;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};

  // On lines of their own: spinning readers of one must not slow down writers of another.
  alignas(64) std::atomic<int64_t> next_task_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};   // odd: a job is open
  alignas(64) std::atomic<uint32_t> inside_{0};  // workers that may be looking at the job

  std::mutex run_mutex_;
  std::vector<std::thread> workers_;
};

}  // namespace godwit
