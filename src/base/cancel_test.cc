#include "base/cancel.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace godwit::cancel_test
