#include "cli/hints.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace godwit::cli::hints_test {
namespace {

TEST(Hints, NameTheFlagsThatHelp) {
  const Error too_long(ErrorKind::kInput, "the text has 1002 tokens",
                       {ErrorCode::kTextTooLong, /*found=*/1001, /*limit=*/1000, /*fits=*/1001});
  EXPECT_EQ(WithHint(too_long),
            "the text has 1002 tokens: stream it with --kv sinks:4+996, cut it into pieces with "
            "--window 1001, or raise the context with -c 1001, even beyond the model's own");
  const Error learned(ErrorKind::kInput, "the text has 102 tokens",
                      {.code = ErrorCode::kTextTooLong,
                       .found = 101,
                       .limit = 50,
                       .fits = 51,
                       .learned_positions = 100});
  EXPECT_EQ(WithHint(learned), "the text has 102 tokens: cut it into pieces with --window 51")
      << "what the model cannot do is no hint";
  const Error fits(ErrorKind::kInput, "the prompt has 90 tokens",
                   {.code = ErrorCode::kPromptTooLong,
                    .found = 90,
                    .limit = 50,
                    .fits = 100,
                    .learned_positions = 100});
  EXPECT_EQ(WithHint(fits),
            "the prompt has 90 tokens: shorten it, or raise the context with -c 90");
  const Error shared(
      ErrorKind::kInput, "the prompt has 90 tokens",
      {.code = ErrorCode::kPromptTooLong, .found = 90, .limit = 50, .fits = 60, .ranks = 2});
  EXPECT_EQ(WithHint(shared), "the prompt has 90 tokens: shorten it") << "ranks forget nothing";
  const Error narrow(ErrorKind::kMemory, "the prompt has 90 tokens",
                     {.code = ErrorCode::kPromptTooLong,
                      .found = 90,
                      .limit = 54,
                      .ranks = 2,
                      .narrower = "int8"});
  EXPECT_EQ(WithHint(narrow),
            "the prompt has 90 tokens: shorten it, or store its keys and values with --kv-type "
            "int8");
  const Error weights(ErrorKind::kMemory, "the weights take all",
                      {.code = ErrorCode::kWeightsTooLarge, .narrower = "int4"});
  EXPECT_EQ(WithHint(weights), "the weights take all: use --weights int4");
  const Error no_weights(ErrorKind::kMemory, "the weights take all",
                         {.code = ErrorCode::kWeightsTooLarge});
  EXPECT_EQ(WithHint(no_weights), "the weights take all");
  const Error int8(ErrorKind::kInput, "not as f32", {ErrorCode::kNeedsInt8Kv});
  EXPECT_EQ(WithHint(int8), "not as f32: use --kv-type int8");
}

TEST(Hints, OtherErrorsStandAsTheyAre) {
  EXPECT_EQ(WithHint(Error(ErrorKind::kInput, "no")), "no");
}

}  // namespace
}  // namespace godwit::cli::hints_test
