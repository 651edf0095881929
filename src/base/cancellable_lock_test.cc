#include "base/cancellable_lock.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace godwit::cancellable_lock_test {
namespace {

TEST(CancellableLockTest, TakesWhatIsFree) {
  std::timed_mutex mutex;
  CancelToken cancel;
  cancel.Cancel();  // the lock was free
  EXPECT_TRUE(CancellableLock(mutex, &cancel).owns_lock());
  EXPECT_TRUE(CancellableLock(mutex, nullptr).owns_lock()) << "given back";
}

TEST(CancellableLockTest, IsWaitedForUntilItIsCancelled) {
  std::timed_mutex mutex;
  CancelToken cancel;
  const std::lock_guard held(mutex);
  std::optional<ErrorKind> thrown;
  std::thread waiter([&] {
    try {
      CancellableLock(mutex, &cancel);
    } catch (const Error& error) {
      thrown = error.kind();
    }
  });
  cancel.Cancel();
  waiter.join();
  EXPECT_EQ(thrown, ErrorKind::kCancelled);
}

}  // namespace
}  // namespace godwit::cancellable_lock_test
