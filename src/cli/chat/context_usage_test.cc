#include "cli/chat/context_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace godwit::cli::context_usage_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ContextUsage, IsScarceFromFourFifthsOn) {
  EXPECT_FALSE((ContextUsage{.used_tokens = 79, .limit_tokens = 100}.scarce()));
  EXPECT_TRUE((ContextUsage{.used_tokens = 80, .limit_tokens = 100}.scarce()));
  EXPECT_EQ((ContextUsage{.used_tokens = 419, .limit_tokens = 512}.percent()), 81);
  const ContextUsage endless{.used_tokens = 1 << 20,
                             .limit_tokens = std::numeric_limits<int64_t>::max()};
  EXPECT_FALSE(endless.scarce());
}

TEST(ContextUsage, NamesWhatHelpsAndNothingThatWouldBeRefused) {
  const ContextUsage usage{
      .used_tokens = 420, .limit_tokens = 512, .made_for = 512, .has_turns = true};
  EXPECT_THAT(DescribeScarcity(usage),
              AllOf(HasSubstr("82 % full (420 of 512 tokens)"), HasSubstr("/undo, /clear"),
                    HasSubstr("/kv sinks:4+508")));
  EXPECT_THAT(DescribeFull(usage), AllOf(HasSubstr("512"), HasSubstr("/kv sinks:4+508")));
  EXPECT_THAT(DescribeTooLong(usage, 600),
              AllOf(HasSubstr("conversation with this question has 600"), HasSubstr("/clear"),
                    Not(HasSubstr("-c "))));

  EXPECT_THAT(DescribeTooLong(usage, 1000, /*or_more=*/false, "a.txt"),
              AllOf(HasSubstr("the conversation with a.txt has 1000 tokens"),
                    HasSubstr("; use a part of it or /kv")));
  EXPECT_THAT(DescribeTooLong(usage, 1000), Not(HasSubstr("/clear"))) << "the question alone";

  const ContextUsage first{.limit_tokens = 100, .made_for = 4096, .may_forget = false};
  EXPECT_THAT(DescribeTooLong(first, 120),
              AllOf(HasSubstr("the question has 120"), HasSubstr("-c 4096"), Not(HasSubstr("/kv")),
                    Not(HasSubstr("/clear"))));
  EXPECT_THAT(DescribeTooLong(first, 5000), Not(HasSubstr("; use")));
  EXPECT_THAT(DescribeTooLong(first, 4096, /*or_more=*/true),
              AllOf(HasSubstr("has more than 4096 tokens"), Not(HasSubstr("; use"))));
}

}  // namespace
}  // namespace godwit::cli::context_usage_test
