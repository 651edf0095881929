#include "engine/step_turns.h"

#include <algorithm>

namespace godwit {

StepTurns::Turn::Turn(StepTurns& turns) : turns_(turns) {
  std::unique_lock lock(turns_.mutex_);
  const int64_t mine = turns_.asked_++;
  turns_.changed_.wait(lock, [&] { return turns_.ended_ == mine; });
}

StepTurns::Turn::~Turn() {
  {
    const std::lock_guard lock(turns_.mutex_);
    ++turns_.ended_;
  }
  turns_.changed_.notify_all();
}

int64_t StepTurns::waiting() const {
  const std::lock_guard lock(mutex_);
  return std::max<int64_t>(0, asked_ - ended_ - 1);
}

void StepTurns::Join(Scheduler& scheduler) {
  const Turn turn(*this);
  schedulers_.push_back(&scheduler);
}

void StepTurns::Leave(Scheduler& scheduler) {
  const Turn turn(*this);
  std::erase(schedulers_, &scheduler);
}

}  // namespace godwit
