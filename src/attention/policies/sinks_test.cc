#include "attention/policies/sinks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/policies/policy_test_support.h"

namespace godwit {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 200;
constexpr int64_t kMaxStep = 96;

std::unique_ptr<AttentionPolicy> Make(const AttentionGeometry& geometry, int64_t sinks,
                                      int64_t window) {
  return MakeSinksPolicy(geometry, {.kv_type = DType::kF32, .max_step_tokens = kMaxStep},
                         fmt::format("{}+{}", sinks, window));
}

// The cache as the paper has it: the tokens 0 .. S-1 and t-W .. t, side by side, each at the
// position that it has in this list; the query stands at the end.
std::vector<SeenKey> CacheAt(int64_t t, int64_t sinks, int64_t window) {
  std::vector<SeenKey> cache;
  for (int64_t token = 0; token <= t; ++token) {
    if (token < sinks || token >= t - window) cache.push_back({token, std::ssize(cache)});
  }
  return cache;
}

struct Budget {
  int64_t sinks, window;
};

class SinksPolicyTest : public testing::TestWithParam<Budget> {};

void ExpectPlacesInTheCache(const AttentionGeometry& geometry, const Budget& budget) {
  const auto [sinks, window] = budget;
  const TestText text(geometry, kTokens, 1);
  for (const int64_t chunk : {1, 5, 96}) {
    const auto out = ReadText(*Make(geometry, sinks, window), geometry, text, kTokens, chunk);
    size_t index = 0;
    for (int64_t t = 0; t < kTokens; ++t) {
      const std::vector<SeenKey> cache = CacheAt(t, sinks, window);
      const int64_t place = cache.back().position;
      for (const int64_t model_window : geometry.windows) {
        std::vector<SeenKey> keys;
        for (const SeenKey& key : cache) {
          if (model_window == 0 || place - key.position < model_window) keys.push_back(key);
        }
        const int64_t layer = model_window == 0 ? 0 : 1;
        for (int64_t head = 0; head < 4; ++head) {
          for (const double expected : text.Attend(layer, head, t, place, keys)) {
            ASSERT_NEAR(out[index++], expected, 2e-6) << "token " << t << " layer " << layer;
          }
        }
      }
    }
  }
}

// The last layer has a window of the model's own, which counts positions in the cache too.
TEST_P(SinksPolicyTest, EveryTokenSeesSinksAndWindowAtTheirPlacesInTheCache) {
  ExpectPlacesInTheCache(TestGeometry(4, 2, 12, 8, {0, 9}), GetParam());
}

TEST_P(SinksPolicyTest, AlibiCountsPlacesInTheCacheToo) {
  for (const bool in_bf16 : {false, true}) {
    ExpectPlacesInTheCache(WithAlibi(TestGeometry(4, 2, 12, 8, {0, 9}), in_bf16), GetParam());
  }
}

TEST_P(SinksPolicyTest, MemoryIsWhatItWasAtTheBeginning) {
  const auto [sinks, window] = GetParam();
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  const TestText text(geometry, kTokens, 2);
  const auto policy = Make(geometry, sinks, window);
  const int64_t bytes = policy->Stats().bytes;
  EXPECT_GT(bytes, 0);
  for (const int64_t chunk : {1, 7, 90}) {
    while (policy->length() < kTokens) {
      ReadText(*policy, geometry, text, std::min(kTokens, policy->length() + chunk), chunk);
      const KvStats stats = policy->Stats();
      EXPECT_EQ(stats.policy, fmt::format("sinks:{}+{}", sinks, window));
      EXPECT_EQ(stats.seen, policy->length());
      EXPECT_EQ(stats.kept, std::min(policy->length(), sinks + window));
      EXPECT_EQ(stats.bytes, bytes);
      if (policy->length() >= chunk * 20) break;
    }
  }
}

TEST_P(SinksPolicyTest, GoesBackUntilTheFirstEviction) {
  const auto [sinks, window] = GetParam();
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  // Token t = S + W is the last that sees everything before it.
  const int64_t whole = sinks + window + 1;
  const TestText text(geometry, whole, 3);
  const auto policy = Make(geometry, sinks, window);
  ReadText(*policy, geometry, text, whole, 3);
  for (int64_t length = 0; length <= whole; ++length) EXPECT_TRUE(policy->CanTruncate(length));
  EXPECT_FALSE(policy->CanTruncate(whole + 1));
  policy->Truncate(whole - 1);
  EXPECT_EQ(policy->length(), whole - 1);
  EXPECT_EQ(policy->Stats().kept, whole - 1);
}

TEST_P(SinksPolicyTest, GoesBackAsFarAsTheRingReachesAfterwards) {
  const auto [sinks, window] = GetParam();
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  constexpr int64_t kLong = 1000;
  const TestText text(geometry, kLong, 8);
  const TestText other(geometry, kLong, 9);
  const auto reference = ReadText(*Make(geometry, sinks, window), geometry, text, kLong, 16);
  int64_t back = 0;
  while (true) {
    const auto policy = Make(geometry, sinks, window);
    auto result = ReadText(*policy, geometry, text, kLong - 100 - back, 16);
    ReadText(*policy, geometry, other, kLong - 100, 16);
    const int64_t length = kLong - 100 - back;
    if (!policy->CanTruncate(length)) {
      const Error error = ErrorOf([&] { policy->Truncate(length); });
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("{} of {} tokens", length, kLong - 100)));
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("sinks:{}+{}", sinks, window)));
      EXPECT_EQ(policy->length(), kLong - 100);
      break;
    }
    policy->Truncate(length);
    const auto rest = ReadText(*policy, geometry, text, kLong, 16);
    result.insert(result.end(), rest.begin(), rest.end());
    ASSERT_EQ(result, reference) << "back by " << back;
    ++back;
  }
  EXPECT_GE(back, sinks + 1);
  EXPECT_LE(back, sinks + 65);
}

// Sinks and window that were read anew are the ones that are seen after the eviction.
TEST_P(SinksPolicyTest, WhatIsReadAgainAfterGoingBackStreams) {
  const auto [sinks, window] = GetParam();
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0, 9});
  const TestText text(geometry, kTokens, 4);
  const TestText other(geometry, kTokens, 5);
  const auto reference = ReadText(*Make(geometry, sinks, window), geometry, text, kTokens, 16);
  const int64_t whole = std::min(kTokens, sinks + window + 1);
  for (const int64_t kept : {int64_t{0}, whole / 2}) {
    const auto policy = Make(geometry, sinks, window);
    auto result = ReadText(*policy, geometry, text, kept, 16);
    ReadText(*policy, geometry, other, whole, 16);
    policy->Truncate(kept);
    const auto rest = ReadText(*policy, geometry, text, kTokens, 16);
    result.insert(result.end(), rest.begin(), rest.end());
    EXPECT_EQ(result, reference) << "from " << whole << " back to " << kept;
  }
}

INSTANTIATE_TEST_SUITE_P(Budgets, SinksPolicyTest,
                         testing::Values(Budget{0, 1}, Budget{1, 3}, Budget{4, 3}, Budget{7, 3},
                                         Budget{0, 16}, Budget{4, 16}, Budget{7, 60},
                                         Budget{64, 64}, Budget{70, 10}, Budget{4, 130},
                                         Budget{4, 500}),
                         [](const auto& info) {
                           return fmt::format("{}_and_{}", info.param.sinks, info.param.window);
                         });

// After a step that did not end, the state before it can go back as it could.
TEST(SinksPolicyRing, HoldsWhatGoingBackNeedsBesideTheLargestStep) {
  constexpr int64_t kSinks = 4, kWindow = 28, kWhole = kSinks + kWindow + 1;
  static_assert((kWhole - 1 + kMaxStep) % 64 == 0, "one token less would take a page less");
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  const TestText text(geometry, kTokens, 6);
  const TestText other(geometry, kTokens, 7);
  const auto reference = ReadText(*Make(geometry, kSinks, kWindow), geometry, text, kTokens, 16);
  const auto policy = Make(geometry, kSinks, kWindow);
  auto result = ReadText(*policy, geometry, text, kWhole - 1, 16);
  ReadText(*policy, geometry, text, kWhole, 16);

  ThreadPool pool(1);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  std::vector<float> dropped(kMaxStep * 16);
  policy->Begin(kMaxStep);
  policy->Attend(0, other.Input(0, kWhole, kWhole + kMaxStep), exec,
                 {dropped.data(), kMaxStep, 16, 16});
  policy->Truncate(kWhole - 1);
  const auto rest = ReadText(*policy, geometry, text, kTokens, 16);
  result.insert(result.end(), rest.begin(), rest.end());
  EXPECT_EQ(result, reference);
}

TEST(SinksPolicyRefusals, AStepBeyondTheLargestChunk) {
  const auto policy = Make(TestGeometry(2, 1, 8, 8, {0}), 4, 8);
  EXPECT_EQ(policy->max_step_tokens(), kMaxStep);
  EXPECT_EQ(policy->max_length(), INT64_MAX);
  const Error error = ErrorOf([&] { policy->Begin(kMaxStep + 1); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(),
              HasSubstr("a step of 97 tokens, the KV policy sinks:4+8 takes at most 96"));
  EXPECT_EQ(policy->length(), 0);
}

TEST(SinksPolicyRefusals, FrequenciesThatChangeWithTheText) {
  AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  geometry.rotary.scaling = {
      .kind = RotaryScaling::Kind::kDynamic, .factor = 2, .original_context = 64};
  const Error error = ErrorOf([&] { Make(geometry, 4, 8); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("rope_scaling"));
}

TEST(SinksPolicyRefusals, SinksThatTheModelItselfDoesNotLookBackAt) {
  const auto refusal = [](std::vector<int64_t> windows, int64_t sinks, int64_t window) {
    const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, std::move(windows));
    return ErrorOf(ErrorKind::kUnsupported, [&] { Make(geometry, sinks, window); });
  };
  EXPECT_THAT(refusal({20, 30}, 4, 26), HasSubstr("30 tokens only, so use sinks:4+25"));
  EXPECT_THAT(refusal({5}, 4, 8), testing::EndsWith("5 tokens only"));
  Make(TestGeometry(2, 1, 8, 8, {20, 30}), 4, 25);
  Make(TestGeometry(2, 1, 8, 8, {20, 0}), 4, 100);
  Make(TestGeometry(2, 1, 8, 8, {20}), 0, 100);
}

TEST(WindowPolicy, IsSinksWithoutSinks) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 9});
  const TestText text(geometry, kTokens, 1);
  const auto window =
      MakeWindowPolicy(geometry, {.kv_type = DType::kF32, .max_step_tokens = kMaxStep}, "11");
  EXPECT_EQ(ReadText(*window, geometry, text, kTokens, 5),
            ReadText(*Make(geometry, 0, 11), geometry, text, kTokens, 5));
  EXPECT_EQ(window->Stats().policy, "window:11");
  EXPECT_EQ(window->Stats().kept, 11);
  EXPECT_EQ(window->Stats().first_dropped, 0);
}

TEST(PinnedPrefix, IsSinksInACacheOfTheSameSize) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 9});
  const TestText text(geometry, kTokens, 1);
  const auto pinned = MakeSinksPolicy(
      geometry, {.kv_type = DType::kF32, .max_step_tokens = kMaxStep}, "2+11,pin=7");
  EXPECT_EQ(ReadText(*pinned, geometry, text, kTokens, 5),
            ReadText(*Make(geometry, 7, 6), geometry, text, kTokens, 5));
  EXPECT_EQ(pinned->Stats().policy, "sinks:2+11,pin=7");
  EXPECT_EQ(pinned->Stats().kept, 13);
  EXPECT_EQ(pinned->Stats().most_kept, 13);
  EXPECT_EQ(pinned->Stats().first_dropped, 7);
}

// Not after hours of allocating small pages.
TEST(SinksPolicyRefusals, ABudgetThatNoMachineHolds) {
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  EXPECT_EQ(ErrorOf([&] { Make(geometry, 4, int64_t{1} << 40); }).kind(), ErrorKind::kMemory);
  EXPECT_EQ(ErrorOf([&] { Make(geometry, int64_t{1} << 40, 4); }).kind(), ErrorKind::kMemory);
}

}  // namespace
}  // namespace godwit
