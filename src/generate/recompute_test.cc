#include "generate/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "kernels/dispatch.h"
#include "tests/fake_model.h"

namespace godwit {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kVocab = 1000;

// Its states tell where in its text a token was read.
class RecomputeTest : public testing::Test {
 protected:
  std::vector<float> Read(AttentionPolicy& policy, const std::vector<int32_t>& tokens,
                          const CancelToken* cancel = nullptr) {
    std::vector<float> states(tokens.size());
    const Exec exec{.pool = pool_,
                    .kernels = *kernels::SelectIsa("").table,
                    .workspace = workspace_,
                    .cancel = cancel};
    const Segment segment{.tokens = tokens, .policy = &policy};
    recompute_.Forward(exec, {&segment, 1}, {states.data(), std::ssize(states), 1, 1});
    return states;
  }

  FakeModel model_{kVocab, [](int32_t token, int64_t position) {
                     return static_cast<int32_t>(100 * position + token);
                   }};
  Recompute recompute_{
      model_, 3, [] { return MakePolicy(FakeModel::Geometry(), {.spec = "dense", .context = 3}); }};
  ThreadPool pool_{1};
  Workspace workspace_;
};

TEST_F(RecomputeTest, ReadsEveryTokenAtTheEndOfAWindow) {
  const auto policy = recompute_.NewPolicy();
  EXPECT_THAT(Read(*policy, {1, 2, 3, 4, 5}), ElementsAre(1, 102, 203, 204, 205));
  ASSERT_EQ(model_.reads().size(), 3u);
  EXPECT_THAT(model_.reads()[0].tokens, ElementsAre(1, 2, 3));
  EXPECT_THAT(model_.reads()[1].tokens, ElementsAre(2, 3, 4));
  EXPECT_THAT(model_.reads()[2].tokens, ElementsAre(3, 4, 5));
  for (const FakeModel::Read& read : model_.reads()) EXPECT_EQ(read.position, 0);
  EXPECT_EQ(policy->length(), 5);
  EXPECT_EQ(policy->Stats().policy, "recompute:3");
  EXPECT_EQ(policy->Stats().kept, 3);
}

TEST_F(RecomputeTest, ChunksAndGoingBackDoNotShow) {
  const auto policy = recompute_.NewPolicy();
  EXPECT_THAT(Read(*policy, {1}), ElementsAre(1));
  EXPECT_THAT(Read(*policy, {2, 3, 4}), ElementsAre(102, 203, 204));
  EXPECT_THAT(Read(*policy, {7, 8}), ElementsAre(207, 208));
  policy->Truncate(4);
  EXPECT_THAT(Read(*policy, {5}), ElementsAre(205));
  EXPECT_THAT(model_.reads().back().tokens, ElementsAre(3, 4, 5));
  policy->Truncate(1);
  EXPECT_THAT(Read(*policy, {9}), ElementsAre(109));
  EXPECT_THAT(model_.reads().back().tokens, ElementsAre(1, 9));
  EXPECT_FALSE(policy->CanTruncate(3));
  EXPECT_THROW(policy->Truncate(3), Error);
}

TEST_F(RecomputeTest, AStepThatFailsDidNotHappen) {
  const auto policy = recompute_.NewPolicy();
  Read(*policy, {1, 2});
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_THROW(Read(*policy, {3, 4}, &cancel), Error);
  EXPECT_EQ(policy->length(), 2);
  EXPECT_THAT(Read(*policy, {5}), ElementsAre(205));
  EXPECT_THAT(model_.reads().back().tokens, ElementsAre(1, 2, 5));
}

}  // namespace
}  // namespace godwit
