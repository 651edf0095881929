#include "base/cancel.h"

#include <gtest/gtest.h>

#include <thread>

namespace godwit::cancel_test {
namespace {

TEST(CancelToken, ThrowsOnlyWhenCancelled) {
  CancelToken token;
  EXPECT_FALSE(token.cancelled());
  EXPECT_NO_THROW(token.ThrowIfCancelled());
  token.Cancel();
  token.Cancel();
  EXPECT_TRUE(token.cancelled());
  try {
    token.ThrowIfCancelled();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  }
  token.Reset();
  EXPECT_NO_THROW(token.ThrowIfCancelled());
}

TEST(CancelScope, TheInnermostCountsInItsThread) {
  EXPECT_EQ(CancelScope::current(), nullptr);
  const CancelToken outer, inner;
  const CancelScope scope(outer);
  {
    const CancelScope within(inner);
    EXPECT_EQ(CancelScope::current(), &inner);
    std::thread([] { EXPECT_EQ(CancelScope::current(), nullptr); }).join();
  }
  EXPECT_EQ(CancelScope::current(), &outer);
}

}  // namespace
}  // namespace godwit::cancel_test
