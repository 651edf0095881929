// The wish of a caller that its request ends, which also ends the step that computes it.
#pragma once

#include <atomic>

#include "base/cancel.h"

namespace godwit {

class Interrupt {
 public:
  // Any thread, any signal handler.
  void Cancel() noexcept {
    token_.Cancel();
    // Seen by the scheduler, which names its step first and looks at the token then.
    if (CancelToken* const step = step_.load()) step->Cancel();
  }

  const CancelToken& token() const { return token_; }
  bool cancelled() const noexcept { return token_.cancelled(); }

  // Between requests, by their owner.
  void Reset() noexcept { token_.Reset(); }

  // The scheduler's: what to cancel as long as a step computes for the request; null: none does.
  void SetStep(CancelToken* step) noexcept { step_.store(step); }

 private:
  CancelToken token_;
  std::atomic<CancelToken*> step_{nullptr};
};

}  // namespace godwit
