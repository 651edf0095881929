// CancelToken: how a caller asks work in progress to stop.
//
// Cancel() may be called from any thread and from a signal handler; long work asks cancelled() or
// ThrowIfCancelled() often enough to stop within 200 ms. The flag carries no data: it orders no
// other memory. The token must outlive the work that looks at it.
#pragma once

#include <atomic>

#include "base/error.h"

namespace godwit {

class CancelToken {
 public:
  CancelToken() = default;
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  void Cancel() noexcept { flag_.store(true, std::memory_order_relaxed); }
  void Reset() noexcept { flag_.store(false, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return flag_.load(std::memory_order_relaxed); }

  void ThrowIfCancelled() const {
    if (cancelled()) Throw(ErrorKind::kCancelled, "cancelled");
  }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler must not take a lock");
  std::atomic<bool> flag_{false};
};

// CancelScope: while it lives, its thread's work also ends with that token, wherever current() is
// looked at. It is for work behind the public API, which knows no tokens. Scopes nest; the
// innermost counts.
class CancelScope {
 public:
  explicit CancelScope(const CancelToken& token) : before_(current_) { current_ = &token; }
  ~CancelScope() { current_ = before_; }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  // Null: there is none.
  static const CancelToken* current() { return current_; }

 private:
  const CancelToken* before_;
  static inline thread_local const CancelToken* current_ = nullptr;
};

}  // namespace godwit
