// StepTurns: the turns that schedulers of a group of engines take, in the order in which they ask.
//
// A scheduler holds the turn from one look for work to the end of the step that follows. The holder
// may also read and change what belongs to the computing threads of the others, which are between
// two steps. So memory is given and taken as if one scheduler had the requests of all. Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace godwit {

class Scheduler;

class StepTurns {
 public:
  // A turn, for its lifetime. The constructor waits for it.
  class Turn {
   public:
    explicit Turn(StepTurns& turns);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    StepTurns& turns_;
  };

  // Adds and removes a scheduler. Both wait for a turn.
  void Join(Scheduler& scheduler);
  void Leave(Scheduler& scheduler);

  // The number of turns that are waited for.
  int64_t waiting() const;

  // All schedulers, for the holder of the turn.
  std::span<Scheduler* const> schedulers() const { return schedulers_; }

  // The number of a new request: older requests of all schedulers have lower ones.
  int64_t NextTicket() { return next_ticket_.fetch_add(1, std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;  // guards the next two
  std::condition_variable changed_;
  int64_t asked_ = 0, ended_ = 0;       // turns
  std::vector<Scheduler*> schedulers_;  // guarded by the turn
  std::atomic<int64_t> next_ticket_{0};
};

}  // namespace godwit
