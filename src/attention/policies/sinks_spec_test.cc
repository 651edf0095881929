#include "attention/policies/sinks_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::sinks_spec_test {
namespace {

using ::testing::HasSubstr;

TEST(SinksSpecTest, PinShortensTheWindow) {
  const auto expect = [](const char* arguments, int64_t kept_first, int64_t rolling) {
    const SinksSpec spec = ParseSinksSpec(arguments);
    EXPECT_EQ(spec.kept_first(), kept_first) << arguments;
    EXPECT_EQ(spec.rolling(), rolling) << arguments;
    EXPECT_EQ(spec.cache(), 64) << arguments;
  };
  expect("4+60", 4, 60);
  expect("0+64", 0, 64);
  expect("4+60,pin=0", 4, 60);
  expect("4+60,pin=3", 4, 60);
  expect("4+60,pin=20", 20, 44);
  expect("4+60,pin=63", 63, 1);
  EXPECT_EQ(ParseSinksSpec("4+60,pin=20").ToString(), "sinks:4+60,pin=20");
  EXPECT_EQ(ParseSinksSpec("4+60,pin=0").ToString(), "sinks:4+60");
}

TEST(SinksSpecTest, IsFoundInAPolicyOfItsKindOnly) {
  EXPECT_EQ(FindSinksSpec("sinks:4+60,pin=20")->pin, 20);
  for (const char* kv : {"dense", "window:64", "sinks", "blocks:initial=64"}) {
    EXPECT_EQ(FindSinksSpec(kv), std::nullopt) << kv;
  }
}

TEST(SinksSpecTest, RefusesWhatMakesNoSense) {
  for (const char* arguments :
       {"4+60,", "4+60,pin", "4+60,pin=", "4+60,pin=x", "4+60,pin=-1", "4+60,pin=5,pin=6",
        "4+60,keep=5", "4+0,pin=2", ",pin=2", "4+60,pin=99999999999999999999"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParseSinksSpec(arguments); }),
                HasSubstr(fmt::format("\"sinks:{}\"", arguments)));
  }
  for (const char* arguments : {"4+60,pin=64", "4+60,pin=65"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParseSinksSpec(arguments); }),
                HasSubstr("in a cache of 64: nothing is left for the window"));
  }
}

}  // namespace
}  // namespace godwit::sinks_spec_test
