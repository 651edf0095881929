#include "attention/policies/sinks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention_test_support.h"

namespace godwit::sinks_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 200;

std::unique_ptr<TextCache> Make(const AttentionGeometry& geometry, const std::string& spec) {
  return NewText(geometry, {.spec = spec, .kv_type = DType::kF32});
}
std::unique_ptr<TextCache> Make(const AttentionGeometry& geometry, int64_t sinks, int64_t window) {
  return Make(geometry, fmt::format("sinks:{}+{}", sinks, window));
}

// The cache as in the paper: tokens 0 .. S-1 and t-W .. t side by side, each at its position in
// this list. The query stands at the end.
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
  for (const int64_t chunk : {1, 5, 96, 200}) {
    const auto out = ReadText(*Make(geometry, sinks, window), text, kTokens, chunk);
    size_t index = 0;
    for (int64_t t = 0; t < kTokens; ++t) {
      const std::vector<SeenKey> cache = CacheAt(t, sinks, window);
      const int64_t place = cache.back().position;
      for (int64_t layer = 0; layer < geometry.layers; ++layer) {
        const int64_t model_window = geometry.windows[layer];
        std::vector<SeenKey> keys;
        for (const SeenKey& key : cache) {
          if (model_window == 0 || place - key.position < model_window) keys.push_back(key);
        }
        for (int64_t head = 0; head < 4; ++head) {
          for (const double expected : text.Attend(layer, head, t, place, keys)) {
            ASSERT_NEAR(out[index++], expected, 2e-6) << "token " << t << " layer " << layer;
          }
        }
      }
    }
  }
}

// The last layer has the model's own window, which counts positions in the cache, too.
TEST_P(SinksPolicyTest, EveryTokenSeesSinksAndWindowAtTheirPlacesInTheCache) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 9});
  ExpectPlacesInTheCache(geometry, GetParam());
  ExpectPlacesInTheCache(WithValuesInKeys(TestGeometry(4, 1, 28, 8, {0, 9})), GetParam());
  for (const double theta : {0, 30}) {
    ExpectPlacesInTheCache(WithOtherRotary(geometry, theta), GetParam());
    ExpectPlacesInTheCache(WithTemperatures(WithOtherRotary(geometry, theta)), GetParam());
  }
  const AttentionGeometry three = TestGeometry(4, 2, 12, 8, {0, 9, 0});
  ExpectPlacesInTheCache(WithOtherRotary(WithOtherRotary(three, 30), 0), GetParam());
}

// A chunk that holds a place and all before it shows them all, even where another chunk begins in
// the text.
TEST_P(SinksPolicyTest, ChunksCountPlacesInTheCacheToo) {
  const auto [sinks, window] = GetParam();
  ExpectPlacesInTheCache(InChunks(TestGeometry(4, 2, 12, 8, {0, sinks + window + 1})), GetParam());
}

TEST_P(SinksPolicyTest, AlibiCountsPlacesInTheCacheToo) {
  for (const bool in_bf16 : {false, true}) {
    ExpectPlacesInTheCache(WithAlibi(TestGeometry(4, 2, 12, 8, {0, 9}), in_bf16), GetParam());
  }
}

// Whole pages are dropped as they fall out of the window.
TEST_P(SinksPolicyTest, MemoryIsBoundedHoweverLongTheText) {
  const auto [sinks, window] = GetParam();
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  constexpr int64_t kLong = 1500;
  const TestText text(geometry, kLong, 2);
  for (const int64_t chunk : {1, 7, 90}) {
    const auto cache = Make(geometry, sinks, window);
    const KvLayout& layout = cache->cache().layout();
    while (cache->length() < kLong) {
      ReadText(*cache, text, std::min(kLong, cache->length() + chunk), chunk);
      const KvStats stats = cache->Stats();
      EXPECT_EQ(stats.policy, fmt::format("sinks:{}+{}", sinks, window));
      EXPECT_EQ(stats.seen, cache->length());
      EXPECT_EQ(stats.kept, std::min(cache->length(), sinks + window));
      EXPECT_EQ(stats.max_kept_tokens, sinks + window);
      if (stats.kept == stats.seen) {
        EXPECT_TRUE(stats.dropped.empty());
      } else {
        ASSERT_EQ(stats.dropped.size(), 1u);
        EXPECT_EQ(stats.dropped[0].begin, sinks);
        EXPECT_EQ(stats.dropped[0].end, cache->length() - window);
      }
      EXPECT_LE(stats.bytes, layout.BytesFor(sinks) + layout.BytesFor(window + 2 * 64));
      EXPECT_EQ(stats.bytes, cache->cache().pool().budget().used()) << "nobody else holds any";
    }
  }
}

TEST_P(SinksPolicyTest, AStepReadsSinksAndWindow) {
  const auto [sinks, window] = GetParam();
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  const int64_t whole = sinks + window + 1;
  const TestText text(geometry, whole + 50, 2);
  const auto cache = Make(geometry, sinks, window);
  const int64_t row = cache->cache().layout().page_bytes() / 64;
  ReadText(*cache, text, whole - 1, 64);
  for (int64_t length = whole; length < whole + 50; ++length) {
    ReadText(*cache, text, length, 1);
    EXPECT_EQ(cache->Stats().read_bytes, whole * row);
  }
}

TEST_P(SinksPolicyTest, GoesBackUntilTheFirstEviction) {
  const auto [sinks, window] = GetParam();
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  // Token t = S + W is the last that sees everything before it.
  const int64_t whole = sinks + window + 1;
  const TestText text(geometry, whole, 3);
  const auto cache = Make(geometry, sinks, window);
  ReadText(*cache, text, whole, 3);
  for (int64_t length = 0; length <= whole; ++length) EXPECT_TRUE(cache->CanTruncate(length));
  EXPECT_FALSE(cache->CanTruncate(whole + 1));
  cache->Truncate(whole - 1);
  EXPECT_EQ(cache->length(), whole - 1);
  EXPECT_EQ(cache->Stats().kept, whole - 1);
}

TEST_P(SinksPolicyTest, GoesBackAsFarAsItsPagesReachAfterwards) {
  const auto [sinks, window] = GetParam();
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  constexpr int64_t kLong = 1000, kFrom = kLong - 100;
  const TestText text(geometry, kLong, 8);
  const TestText other(geometry, kLong, 9);
  const auto reference = ReadText(*Make(geometry, sinks, window), text, kLong, 16);
  int64_t back = 0;
  while (true) {
    const auto cache = Make(geometry, sinks, window);
    auto result = ReadText(*cache, text, kFrom - back, 16);
    ReadText(*cache, other, kFrom, 16);
    const int64_t length = kFrom - back;
    if (!cache->CanTruncate(length)) {
      const Error error = ErrorOf([&] { cache->Truncate(length); });
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("{} of {} tokens", length, kFrom)));
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("sinks:{}+{}", sinks, window)));
      EXPECT_EQ(cache->length(), kFrom);
      break;
    }
    cache->Truncate(length);
    const auto rest = ReadText(*cache, text, kLong, 16);
    result.insert(result.end(), rest.begin(), rest.end());
    ASSERT_EQ(result, reference) << "back by " << back;
    ++back;
  }
  EXPECT_EQ(back, TextCache::kMaxRollbackTokens + (kFrom - window) % 64 + 1)
      << "until the window would reach into a page that went";
}

// After the eviction, tokens see the sinks and the window that were read again.
TEST_P(SinksPolicyTest, TruncatedTextStreamsAgainWhenReread) {
  const auto [sinks, window] = GetParam();
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0, 9});
  const TestText text(geometry, kTokens, 4);
  const TestText other(geometry, kTokens, 5);
  const auto reference = ReadText(*Make(geometry, sinks, window), text, kTokens, 16);
  const int64_t whole = std::min(kTokens, sinks + window + 1);
  for (const int64_t kept : {int64_t{0}, whole / 2}) {
    const auto cache = Make(geometry, sinks, window);
    auto result = ReadText(*cache, text, kept, 16);
    ReadText(*cache, other, whole, 16);
    cache->Truncate(kept);
    const auto rest = ReadText(*cache, text, kTokens, 16);
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

TEST(SinksPolicyMemory, UnfilledWindowTakesNoMemory) {
  const AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  const TestText text(geometry, 70, 1);
  for (const char* spec : {"sinks:4+1099511627776", "sinks:1099511627776+4"}) {
    const auto cache = Make(geometry, spec);
    EXPECT_EQ(cache->limit_tokens(), INT64_MAX);
    EXPECT_EQ(cache->Stats().bytes, 0);
    ReadText(*cache, text, 70, 70);
    EXPECT_EQ(cache->Stats().bytes, cache->cache().layout().BytesFor(70));
  }
}

TEST(SinksPolicyRefusals, FrequenciesThatChangeWithTheText) {
  AttentionGeometry geometry = TestGeometry(2, 1, 8, 8, {0});
  geometry.rotaries[0].scaling = {
      .kind = RotaryScaling::Kind::kDynamic, .factor = 2, .original_context = 64};
  const Error error = ErrorOf([&] { Make(geometry, 4, 8); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("rope_scaling is dynamic"));
  geometry.rotaries[0].scaling = {.kind = RotaryScaling::Kind::kLongRope,
                                  .original_context = 64,
                                  .short_factors = {1, 1, 1, 1},
                                  .long_factors = {2, 2, 2, 2}};
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Make(geometry, 4, 8); }),
              HasSubstr("rope_scaling is longrope"));
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

TEST(SinksPolicyRefusals, PlacesBehindTheFirstChunk) {
  const AttentionGeometry geometry = InChunks(TestGeometry(2, 1, 8, 8, {0, 20}));
  for (const char* spec : {"sinks:4+16", "sinks:4+100", "sinks:1+19,pin=8", "window:20"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Make(geometry, spec); }),
                HasSubstr("attends within chunks of 20 tokens: keep fewer than 20"));
  }
  Make(geometry, "sinks:4+15");
  Make(geometry, "window:19");
  Make(InChunks(TestGeometry(2, 1, 8, 8, {0})), "window:20");
}

TEST(WindowPolicy, IsSinksWithoutSinks) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 9});
  const TestText text(geometry, kTokens, 1);
  const auto window = Make(geometry, "window:11");
  EXPECT_EQ(ReadText(*window, text, kTokens, 5),
            ReadText(*Make(geometry, 0, 11), text, kTokens, 5));
  EXPECT_EQ(window->Stats().policy, "window:11");
  EXPECT_EQ(window->Stats().kept, 11);
  EXPECT_EQ(window->Stats().dropped[0].begin, 0);
}

TEST(PinnedPrefix, PinMatchesSinksInACacheOfTheSameSize) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 9});
  const TestText text(geometry, kTokens, 1);
  const auto pinned = Make(geometry, "sinks:2+11,pin=7");
  EXPECT_EQ(ReadText(*pinned, text, kTokens, 5), ReadText(*Make(geometry, 7, 6), text, kTokens, 5));
  EXPECT_EQ(pinned->Stats().policy, "sinks:2+11,pin=7");
  EXPECT_EQ(pinned->Stats().kept, 13);
  EXPECT_EQ(pinned->Stats().max_kept_tokens, 13);
  EXPECT_EQ(pinned->Stats().dropped[0].begin, 7);
}

}  // namespace
}  // namespace godwit::sinks_test
