// The laws that every attention policy passes (docs/adding-a-policy.md).

#include <gtest/gtest.h>

#include "attention/make_policy.h"
#include "attention/policies/policy_test_support.h"
#include "base/error.h"
#include "kernels/dispatch.h"

namespace godwit {
namespace {

constexpr int64_t kContext = 8192;
constexpr int64_t kMaxStep = 96;

// How keys and values are stored and multiplied.
struct Arithmetic {
  std::string_view name;
  DType kv_type;
  bool int8_products = false;
};
constexpr Arithmetic kArithmetics[] = {{"F32", DType::kF32},
                                       {"F16", DType::kF16},
                                       {"BF16", DType::kBF16},
                                       {"I8", DType::kI8},
                                       {"I8Products", DType::kI8, true}};

class Laws : public testing::TestWithParam<std::tuple<size_t, Arithmetic>> {
 protected:
  const PolicyKind& kind() const { return AllPolicies()[std::get<0>(GetParam())]; }

  std::unique_ptr<AttentionPolicy> Make(const AttentionGeometry& geometry, std::string_view spec,
                                        int64_t context = kContext) const {
    return MakePolicy(geometry, {.spec = std::string(spec),
                                 .kv_type = std::get<1>(GetParam()).kv_type,
                                 .int8_products = std::get<1>(GetParam()).int8_products,
                                 .context = context,
                                 .max_step_tokens = kMaxStep});
  }

  const std::vector<AttentionGeometry> geometries_ = {
      TestGeometry(4, 2, 16, 16, {0, 0}),
      TestGeometry(3, 3, 24, 24, {0, 7}),
      TestGeometry(5, 1, 8, 8, {0}),
      WithAlibi(TestGeometry(4, 2, 16, 16, {0, 7}), /*in_bf16=*/false),
      WithAlibi(TestGeometry(3, 3, 8, 8, {0, 0}), /*in_bf16=*/true),
  };
  Workspace workspace_;
};

TEST_P(Laws, AnAmpleBudgetGivesTheDenseResult) {
  for (const AttentionGeometry& geometry : geometries_) {
    const TestText text(geometry, 300, 1);
    const auto policy = Make(geometry, kind().roomy_example);
    const auto dense = Make(geometry, "dense");
    EXPECT_EQ(ReadText(*policy, geometry, text, 300, 50),
              ReadText(*dense, geometry, text, 300, 50));
  }
}

TEST_P(Laws, ChunksAndThreadsDoNotShow) {
  for (const auto spec : {kind().tight_example, kind().roomy_example}) {
    for (const AttentionGeometry& geometry : geometries_) {
      const TestText text(geometry, 200, 2);
      const auto reference = ReadText(*Make(geometry, spec), geometry, text, 200, 1);
      for (const int64_t chunk : {2, 7, 64, 96}) {
        const auto policy = Make(geometry, spec);
        EXPECT_EQ(ReadText(*policy, geometry, text, 200, chunk, 2), reference)
            << spec << ", chunks of " << chunk;
        EXPECT_EQ(policy->length(), 200);
      }
    }
  }
}

TEST_P(Laws, WhatIsTruncatedNeverWas) {
  for (const auto spec : {kind().tight_example, kind().roomy_example}) {
    for (const AttentionGeometry& geometry : geometries_) {
      const TestText text(geometry, 160, 3);
      const TestText other(geometry, 160, 4);
      const auto reference = ReadText(*Make(geometry, spec), geometry, text, 160, 16);
      int64_t allowed = 0;
      for (const int64_t kept : {0, 1, 5, 63, 64, 65, 100}) {
        const auto policy = Make(geometry, spec);
        auto result = ReadText(*policy, geometry, text, kept, 16);
        ReadText(*policy, geometry, other, 130, 16);
        if (!policy->CanTruncate(kept)) {
          EXPECT_THROW(policy->Truncate(kept), Error);
          EXPECT_EQ(policy->length(), 130);
          continue;
        }
        ++allowed;
        policy->Truncate(kept);
        EXPECT_EQ(policy->length(), kept);
        const auto rest = ReadText(*policy, geometry, text, 160, 16);
        result.insert(result.end(), rest.begin(), rest.end());
        EXPECT_EQ(result, reference) << spec << " truncated to " << kept;
      }
      EXPECT_FALSE(Make(geometry, spec)->CanTruncate(1));
      EXPECT_FALSE(Make(geometry, spec)->CanTruncate(-1));
      if (spec == kind().roomy_example) {
        EXPECT_EQ(allowed, 7) << "nothing was dropped";
      }
    }
  }
}

TEST_P(Laws, ARefusedStepChangesNothing) {
  for (const AttentionGeometry& geometry : geometries_) {
    const TestText text(geometry, 90, 5);
    const auto reference =
        ReadText(*Make(geometry, kind().tight_example, 90), geometry, text, 90, 30);
    const auto policy = Make(geometry, kind().tight_example, 90);
    auto result = ReadText(*policy, geometry, text, 60, 30);
    const KvStats before = policy->Stats();
    const int64_t too_many = std::min(policy->max_step_tokens(), policy->max_length() - 60) + 1;
    EXPECT_THROW(policy->Begin(too_many), Error);
    EXPECT_EQ(policy->length(), 60);
    EXPECT_EQ(policy->Stats().kept, before.kept);
    EXPECT_EQ(policy->Stats().bytes, before.bytes);
    const auto rest = ReadText(*policy, geometry, text, 90, 30);
    result.insert(result.end(), rest.begin(), rest.end());
    EXPECT_EQ(result, reference);
  }
}

TEST_P(Laws, AStepThatIsNotEndedDidNotHappen) {
  for (const auto spec : {kind().tight_example, kind().roomy_example}) {
    for (const AttentionGeometry& geometry : geometries_) {
      const int64_t cols = geometry.shape.heads * geometry.shape.head_dim;
      const TestText text(geometry, 180, 6);
      const TestText other(geometry, 180, 7);
      const auto reference = ReadText(*Make(geometry, spec), geometry, text, 180, 20);
      const auto policy = Make(geometry, spec);
      std::vector<float> result;
      ThreadPool pool(1);
      const Exec exec{
          .pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
      for (int64_t at = 0; at < 180; at += 20) {
        const int64_t step = std::min<int64_t>(kMaxStep, 180 - at);
        std::vector<float> dropped(static_cast<size_t>(step * cols));
        policy->Begin(step);
        policy->Attend(0, other.Input(0, at, at + step), exec, {dropped.data(), step, cols, cols});
        const auto rows = ReadText(*policy, geometry, text, at + 20, 20);
        result.insert(result.end(), rows.begin(), rows.end());
      }
      EXPECT_EQ(result, reference) << spec;
    }
  }
}

// As bench fills a cache.
TEST_P(Laws, RowsWithoutQueriesAreCachedAllTheSame) {
  for (const auto spec : {kind().tight_example, kind().roomy_example}) {
    for (const AttentionGeometry& geometry : geometries_) {
      const TestText text(geometry, 170, 9);
      const auto reference = Make(geometry, spec);
      ReadText(*reference, geometry, text, 150, 50);
      const auto expected = ReadText(*reference, geometry, text, 170, 20);

      const auto policy = Make(geometry, spec);
      ThreadPool pool(2);
      const Exec exec{
          .pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
      for (int64_t at = 0; at < 150; at += 50) {
        policy->Begin(50);
        for (int64_t layer = 0; layer < geometry.layers; ++layer) {
          AttentionInput input = text.Input(layer, at, at + 50);
          input.q.rows = 0;
          policy->Attend(layer, input, exec, {});
        }
        policy->End();
      }
      EXPECT_EQ(policy->length(), 150);
      EXPECT_EQ(ReadText(*policy, geometry, text, 170, 20), expected) << spec;
    }
  }
}

TEST_P(Laws, MemoryIsReported) {
  const AttentionGeometry& geometry = geometries_[0];
  const TestText text(geometry, 100, 8);
  const auto policy = Make(geometry, kind().tight_example);
  ReadText(*policy, geometry, text, 100, 50);
  const KvStats stats = policy->Stats();
  EXPECT_EQ(stats.seen, 100);
  EXPECT_LE(stats.kept, 100);
  EXPECT_GT(stats.bytes, 0);
  EXPECT_EQ(stats.policy, kind().tight_example);
}

INSTANTIATE_TEST_SUITE_P(Policies, Laws,
                         testing::Combine(testing::Range<size_t>(0, AllPolicies().size()),
                                          testing::ValuesIn(kArithmetics)),
                         [](const auto& info) {
                           return std::string(AllPolicies()[std::get<0>(info.param)].name) + "_" +
                                  std::string(std::get<1>(info.param).name);
                         });

}  // namespace
}  // namespace godwit
