// Profile: the time that the threads of a pool spend in each part of a step, for bench.
//
// Exec::profile points to one while a step is measured. An operation names its part with a
// ProfilePart, and Exec::Parallel runs its tasks through Run. Times are sums over threads. The
// times of all parts and of waiting add up to the wall time, times the threads: nothing is left
// out, and nothing counts twice. Measuring never changes which tasks run, so results stay the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/thread_pool.h"

namespace godwit {

enum class StepPart : uint8_t {
  kProducts,        // linear layers and the head
  kExpertProducts,  // linear layers of a mixture's experts
  kAttention,       // or the mixer of a recurrent layer
  kChoosingKeys,    // a policy's choice of the keys that a row sees
  kRopeAndKv,       // rotating queries and keys, and writing keys and values
  kQuantizing,      // rounding and quantizing the rows of a product
  kNorms,
  kActivation,
  kRouting,    // choosing experts, gathering their rows and adding their outputs
  kAdds,       // the embedding, residual additions, scales, caps and copies
  kRanks,      // sums over the ranks that share the weights, and waiting for them
  kOthers,     // fork-joins of an operation that names no part
  kOneThread,  // the calling thread between operations
};
inline constexpr size_t kStepParts = 13;

// The part's key in JSON: "rope_and_kv".
std::string_view Name(StepPart part);

// Nanoseconds, summed over threads.
struct ProfileTimes {
  int threads = 1;
  int64_t wall_ns = 0;
  std::array<int64_t, kStepParts> busy_ns = {};  // by StepPart
  int64_t join_wait_ns = 0;                      // threads without a task in a fork-join
  int64_t one_thread_wait_ns = 0;                // threads while only the calling thread works
  int64_t fork_joins = 0;

  int64_t whole_ns() const { return threads * wall_ns; }
  int64_t busy_of(StepPart part) const { return busy_ns[static_cast<size_t>(part)]; }
};

// The times of the tasks of a fork-join, by task.
struct ForkJoin {
  StepPart part;
  std::vector<int64_t> task_ns;
};

class Profile {
 public:
  using Clock = std::function<int64_t()>;  // nanoseconds; called by all threads at once

  // threads: those of the pool of every Run.
  explicit Profile(int threads, Clock clock = SteadyNanoseconds);

  // Begins and ends a stretch of time; times add up over stretches. Operations run in between, all
  // called by one thread.
  void Start();
  void Stop();

  // pool.Run, measured. A call from inside a task is a part of that task.
  void Run(ThreadPool& pool, int64_t tasks, FunctionRef<void(int64_t task, int worker)> body);

  // Appends every fork-join from now on, whose tasks a test may share out among any number of
  // cores.
  void KeepTasks(std::vector<ForkJoin>* fork_joins) { kept_ = fork_joins; }

  // The times of all stretches that have ended.
  ProfileTimes Times() const;

 private:
  friend class ProfilePart;

  static int64_t SteadyNanoseconds();

  // A thread's time by part, on cache lines of its own.
  struct alignas(64) Lap {
    std::array<int64_t, kStepParts> busy_ns = {};
    int64_t mark_ns = 0;  // all earlier time is counted
    StepPart part = StepPart::kOneThread;
  };
  class Task;

  // The lap of the task that this thread runs; null: it runs none.
  static thread_local Lap* task_lap_;

  // Counts the time since the lap's mark, and begins another part. Returns the earlier part.
  StepPart Switch(Lap& lap, StepPart part) const;
  Lap& lap() { return task_lap_ != nullptr ? *task_lap_ : caller_; }

  Clock clock_;
  std::vector<Lap> tasks_;  // [threads], of tasks
  Lap caller_;              // of the calling thread outside tasks
  int64_t start_ns_ = 0;
  int64_t wall_ns_ = 0;
  int64_t job_ns_ = 0;  // wall time in fork-joins
  int64_t fork_joins_ = 0;
  std::vector<ForkJoin>* kept_ = nullptr;  // null: not wanted
};

// Counts the time of this thread as `part`, as long as this lives. The innermost one counts. Does
// nothing if there is no profile.
class ProfilePart {
 public:
  ProfilePart(Profile* profile, StepPart part) : profile_(profile) {
    if (profile_ != nullptr) outer_ = profile_->Switch(profile_->lap(), part);
  }
  ~ProfilePart() {
    if (profile_ != nullptr) profile_->Switch(profile_->lap(), outer_);
  }
  ProfilePart(const ProfilePart&) = delete;
  ProfilePart& operator=(const ProfilePart&) = delete;

 private:
  Profile* profile_;
  StepPart outer_ = StepPart::kOneThread;
};

}  // namespace godwit
