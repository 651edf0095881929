#include "cli/options/recompute_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::cli::recompute_spec_test {
namespace {

using testing::HasSubstr;

TEST(RecomputeSpecTest, IsAskedForByItsName) {
  EXPECT_EQ(RecomputeWindow("recompute:1024"), 1024);
  EXPECT_EQ(RecomputeWindow("recompute:1"), 1);
  for (const char* spec : {"dense", "sinks:4+60", "recomputed:4", ""}) {
    EXPECT_EQ(RecomputeWindow(spec), std::nullopt) << spec;
  }
  for (const char* spec : {"recompute", "recompute:", "recompute:0", "recompute:2x",
                           "recompute:99999999999999999999"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { RecomputeWindow(spec); }),
                HasSubstr("recompute:W"));
  }
}

}  // namespace
}  // namespace godwit::cli::recompute_spec_test
