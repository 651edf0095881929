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

TEST(MakePolicyTest, Int8ProductsNeedAnInt8Cache) {
  const AttentionGeometry geometry = TestGeometry(2, 2, 8, 8, {0});
  for (const char* spec : {"dense", "sinks:4+4"}) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      const PolicyOptions options{
          .spec = spec, .kv_type = type, .int8_products = true, .context = 64};
      EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { MakePolicy(geometry, options); }),
                  HasSubstr(fmt::format("stored as int8, not as {}", Name(type))));
    }
  }
}

// A streaming cache counts positions in the cache, which these cannot be.
TEST(MakePolicyTest, LearnedPositionsAreNeitherCountedAnewNorContinued) {
  AttentionGeometry geometry = TestGeometry(2, 1, 8, 0, {0});
  geometry.learned_positions = 64;
  for (const char* spec : {"sinks:4+8", "sinks:0+64", "window:8"}) {
    const std::string refusal = ErrorOf(
        ErrorKind::kUnsupported, [&] { MakePolicy(geometry, {.spec = spec, .context = 64}); });
    EXPECT_THAT(refusal, HasSubstr(fmt::format("the KV policy {} counts positions", spec)));
    EXPECT_THAT(refusal, HasSubstr("are learned, 64 of them"));
  }
  EXPECT_EQ(MakePolicy(geometry, {.context = 64})->max_length(), 64);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { MakePolicy(geometry, {.context = 65}); }),
              HasSubstr("a context of 65 tokens, but this model has learned positions for 64"));
}

}  // namespace
}  // namespace godwit
