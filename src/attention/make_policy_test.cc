#include "attention/make_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/policies/policy_test_support.h"

namespace godwit {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const char* spec) {
  const AttentionGeometry geometry = TestGeometry(2, 2, 8, 8, {0});
  return ErrorOf(ErrorKind::kInput, [&] { MakePolicy(geometry, {.spec = spec, .context = 64}); });
}

TEST(MakePolicyTest, AnUnknownNameListsTheUsages) {
  for (const char* spec : {"", ":", "denser", "sink:4+4", "SINKS:4+4"}) {
    const std::string message = Refusal(spec);
    EXPECT_THAT(message, HasSubstr(fmt::format("\"{}\"", spec)));
    for (const PolicyKind& kind : AllPolicies()) {
      EXPECT_THAT(message, HasSubstr(std::string(kind.usage)));
    }
  }
}

TEST(MakePolicyTest, ArgumentsThatMakeNoSenseAreNamed) {
  for (const char* arguments :
       {"1", "4", "4+", "+4", "4+0", "-1+4", "4+-4", "4+4x", "4+99999999999999999999", "a+b",
        "4 + 4", "9223372036854775807+1"}) {
    EXPECT_THAT(Refusal(fmt::format("dense:{}", arguments).c_str()), HasSubstr(arguments));
    EXPECT_THAT(Refusal(fmt::format("sinks:{}", arguments).c_str()), HasSubstr(arguments));
  }
  for (const char* spec : {"sinks", "sinks:"}) EXPECT_THAT(Refusal(spec), HasSubstr("sinks:S+W"));
  for (const char* spec :
       {"window", "window:", "window:0", "window:-1", "window:4+4", "window:x"}) {
    EXPECT_THAT(Refusal(spec), HasSubstr("window:W"));
  }
}

}  // namespace
}  // namespace godwit
