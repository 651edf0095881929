#include "base/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <system_error>

#include "base/error.h"
#include "base/numa.h"
#include "base/system/pause.h"

namespace godwit {
namespace {

// Longer than the serial gaps between two ops of a layer, far shorter than a reader would notice.
constexpr std::chrono::microseconds kSpin{40};

// The pool for which this thread works, so that a nested Run() can be told from a fresh one.
struct CurrentPool {
  const ThreadPool* pool = nullptr;
  int worker = 0;
};
thread_local CurrentPool current;

class CurrentPoolScope {
 public:
  CurrentPoolScope(const ThreadPool* pool, int worker) : saved_(current) {
    current = {pool, worker};
  }
  ~CurrentPoolScope() { current = saved_; }

 private:
  CurrentPool saved_;
};

// Waits until done(atom) and returns the value. The condition must hold for good, or a notify must
// announce it.
template <typename Done>
uint32_t SpinThenWait(const std::atomic<uint32_t>& atom, Done done) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (const uint32_t value = atom.load(); done(value)) return value;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  for (;;) {
    const uint32_t value = atom.load();
    if (done(value)) return value;
    atom.wait(value);
  }
}

// Signals such as Ctrl-C are for the program's own threads. A thread inherits the mask in force
// when it starts.
class BlockSignalsScope {
 public:
  BlockSignalsScope() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved_);
  }
  ~BlockSignalsScope() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }

 private:
  sigset_t saved_;
};

}  // namespace

ThreadPool::ThreadPool(int threads, const std::vector<int>& cpus) {
  if (threads < 1 || threads > kMaxThreads) {
    Throw(ErrorKind::kInput, "the number of threads must be between 1 and {}, not {}", kMaxThreads,
          threads);
  }
  workers_.reserve(threads - 1);
  const BlockSignalsScope block_signals;
  try {
    for (int worker = 1; worker < threads; ++worker) {
      const int cpu = cpus.empty() ? -1 : cpus[static_cast<size_t>(worker) % cpus.size()];
      workers_.emplace_back([this, worker, cpu] {
        // A failure (a CPU that went offline) costs speed, nothing else.
        if (cpu >= 0) PinThisThread(cpu);
        WorkerLoop(worker);
      });
    }
  } catch (const std::system_error& error) {
    const int started = this->threads();
    Stop();
    Throw(ErrorKind::kMemory, "cannot start {} threads, only {}: {}", threads, started,
          error.what());
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  stopping_.store(true);
  epoch_.fetch_add(2);  // still closed, but changed, so every worker looks
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int64_t tasks, FunctionRef<void(int64_t, int)> body) {
  if (current.pool == this) {
    for (int64_t task = 0; task < tasks; ++task) body(task, current.worker);
    return;
  }
  const std::scoped_lock lock(run_mutex_);
  const CurrentPoolScope scope(this, /*worker=*/0);
  if (workers_.empty() || tasks <= 1) {
    for (int64_t task = 0; task < tasks; ++task) body(task, /*worker=*/0);
    return;
  }

  body_ = &body;
  tasks_ = tasks;
  next_task_.store(0, std::memory_order_relaxed);
  epoch_.fetch_add(1);  // open
  epoch_.notify_all();
  TakeTasks(/*worker=*/0);
  // Run closes the job before it waits, so the join never waits for a worker that is waking up. A
  // worker first counts itself in, then reads the epoch. Either it sees the closed job and leaves,
  // or Run sees its count.
  epoch_.fetch_add(1);
  SpinThenWait(inside_, [](uint32_t inside) { return inside == 0; });

  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void ThreadPool::WorkerLoop(int worker) {
  const CurrentPoolScope scope(this, worker);
  uint32_t seen = 0;
  for (;;) {
    // A closed job, or one that this worker already left, is not worth waking up for.
    seen = SpinThenWait(epoch_, [this, seen](uint32_t epoch) {
      return (epoch != seen && epoch % 2 == 1) || stopping_.load(std::memory_order_relaxed);
    });
    if (stopping_.load()) return;
    inside_.fetch_add(1);
    if (epoch_.load() == seen) TakeTasks(worker);
    if (inside_.fetch_sub(1) == 1) inside_.notify_one();
  }
}

void ThreadPool::TakeTasks(int worker) noexcept {
  try {
    for (;;) {
      const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks_) return;
      (*body_)(task, worker);
    }
  } catch (...) {
    if (!failed_.exchange(true)) error_ = std::current_exception();
    next_task_.store(tasks_, std::memory_order_relaxed);
  }
}

}  // namespace godwit
