#include "attention/policies/dense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/kv_store.h"
#include "attention/policies/policy_test_support.h"

namespace godwit {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<AttentionPolicy> Make(const AttentionGeometry& geometry, int64_t context,
                                      DType kv_type = DType::kF32) {
  return MakeDensePolicy(geometry, {.kv_type = kv_type, .context = context}, "");
}

constexpr int64_t kTokens = 150;
const std::vector<int64_t> kWindows = {0, 1, 2, 63, 64, 65, 100, 1000};

void ExpectEveryTokenSeesItsWindow(const AttentionGeometry& geometry) {
  const TestText text(geometry, kTokens, 1);
  for (const int64_t chunk : {1, 40, 150}) {
    const auto out = ReadText(*Make(geometry, kTokens), geometry, text, kTokens, chunk);
    size_t index = 0;
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t layer = 0; layer < geometry.layers; ++layer) {
        const int64_t window = kWindows[static_cast<size_t>(layer)];
        std::vector<SeenKey> keys;
        for (int64_t key = 0; key <= t; ++key) {
          if (window == 0 || t - key < window) keys.push_back({key, key});
        }
        for (int64_t head = 0; head < 4; ++head) {
          for (const double expected : text.Attend(layer, head, t, t, keys)) {
            ASSERT_NEAR(out[index++], expected, 2e-6) << "token " << t << " window " << window;
          }
        }
      }
    }
  }
}

// Window w: the last w keys, the token itself among them. Layer by layer, as in some models.
TEST(DensePolicyTest, EveryTokenSeesItsWindow) {
  ExpectEveryTokenSeesItsWindow(TestGeometry(4, 2, 12, 8, kWindows));
}

TEST(DensePolicyTest, AlibiCountsPositionsInTheText) {
  for (const bool in_bf16 : {false, true}) {
    ExpectEveryTokenSeesItsWindow(WithAlibi(TestGeometry(4, 2, 12, 8, kWindows), in_bf16));
  }
}

TEST(DensePolicyTest, RefusesWhatExceedsTheContextWithItsNumbers) {
  const AttentionGeometry geometry = TestGeometry(2, 2, 8, 8, {0});
  const TestText text(geometry, 100, 2);
  const auto policy = Make(geometry, 100);
  EXPECT_EQ(policy->max_length(), 100);
  const Error whole = ErrorOf([&] { policy->Begin(101); });
  EXPECT_EQ(whole.kind(), ErrorKind::kInput);
  EXPECT_THAT(whole.what(), HasSubstr("0 tokens and 101 more exceed the context of 100 tokens"));
  EXPECT_EQ(policy->Stats().bytes, 0);

  ReadText(*policy, geometry, text, 60, 60);
  const KvStats before = policy->Stats();
  EXPECT_THAT(ErrorOf([&] { policy->Begin(41); }).what(),
              HasSubstr("60 tokens and 41 more exceed the context of 100 tokens"));
  EXPECT_THAT(ErrorOf([&] { policy->Begin(INT64_MAX); }).what(), HasSubstr("60 tokens and"));
  EXPECT_EQ(policy->length(), 60);
  EXPECT_EQ(policy->Stats().bytes, before.bytes);
  ReadText(*policy, geometry, text, 100, 40);
  EXPECT_THAT(ErrorOf([&] { policy->Begin(1); }).what(), HasSubstr("100 tokens and 1 more"));
}

TEST(DensePolicyTest, MemoryFollowsTheText) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 12, {0, 0, 0});
  const TestText text(geometry, 300, 3);
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    const int64_t page_bytes = 64 * KvBytesPerToken(geometry, type);
    const auto policy = Make(geometry, 300, type);
    for (const int64_t length : {1, 63, 64, 65, 128, 129, 300}) {
      ReadText(*policy, geometry, text, length, 64);
      const KvStats stats = policy->Stats();
      EXPECT_EQ(stats.policy, "dense");
      EXPECT_EQ(stats.seen, length);
      EXPECT_EQ(stats.kept, length);
      EXPECT_EQ(stats.bytes, (length + 63) / 64 * page_bytes);
    }
    policy->Truncate(65);
    EXPECT_EQ(policy->Stats().bytes, 2 * page_bytes);
    EXPECT_EQ(policy->Stats().kept, 65);
    policy->Truncate(0);
    EXPECT_EQ(policy->Stats().bytes, 0);
    EXPECT_EQ(ErrorOf([&] { policy->Truncate(1); }).kind(), ErrorKind::kUnsupported);
    EXPECT_EQ(ErrorOf([&] { policy->Truncate(-1); }).kind(), ErrorKind::kUnsupported);
  }
}

TEST(DensePolicyTest, TakesNoArguments) {
  const AttentionGeometry geometry = TestGeometry(2, 2, 8, 8, {0});
  const Error error = ErrorOf([&] { MakeDensePolicy(geometry, {.context = 8}, "4+4"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), HasSubstr("\"4+4\""));
}

}  // namespace
}  // namespace godwit
