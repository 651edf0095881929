#include "attention/policies/dense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention_test_support.h"

namespace godwit::dense_test {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<TextCache> Make(const AttentionGeometry& geometry, int64_t context,
                                DType kv_type = DType::kF32) {
  return NewText(geometry, {.kv_type = kv_type, .context = context});
}

constexpr int64_t kTokens = 150;
const std::vector<int64_t> kWindows = {0, 1, 2, 63, 64, 65, 100, 1000};

void ExpectEveryTokenSeesItsWindow(const AttentionGeometry& geometry) {
  const TestText text(geometry, kTokens, 1);
  for (const int64_t chunk : {1, 40, 150}) {
    const auto out = ReadText(*Make(geometry, kTokens), text, kTokens, chunk);
    size_t index = 0;
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t layer = 0; layer < geometry.layers; ++layer) {
        std::vector<SeenKey> keys;
        for (int64_t key = 0; key <= t; ++key) {
          if (ModelShows(geometry, layer, t, key)) keys.push_back({key, key});
        }
        for (int64_t head = 0; head < 4; ++head) {
          for (const double expected : text.Attend(layer, head, t, t, keys)) {
            ASSERT_NEAR(out[index++], expected, 2e-6) << "token " << t << " layer " << layer;
          }
        }
      }
    }
  }
}

// A window of w shows the last w keys, the token itself included. Each layer has its own window.
TEST(DensePolicyTest, EveryTokenSeesItsWindow) {
  ExpectEveryTokenSeesItsWindow(TestGeometry(4, 2, 12, 8, kWindows));
  ExpectEveryTokenSeesItsWindow(WithValuesInKeys(TestGeometry(4, 1, 28, 8, kWindows)));
}

// A chunk of c shows the keys from the last multiple of c on.
TEST(DensePolicyTest, EveryTokenSeesItsChunk) {
  const AttentionGeometry geometry = InChunks(TestGeometry(4, 2, 12, 8, kWindows));
  ExpectEveryTokenSeesItsWindow(geometry);
  ExpectEveryTokenSeesItsWindow(InChunks(WithAlibi(geometry, /*in_bf16=*/false)));
}

TEST(DensePolicyTest, QueriesHaveTheTemperatureOfTheirLayersAndPositions) {
  ExpectEveryTokenSeesItsWindow(
      WithTemperatures(WithOtherRotary(TestGeometry(4, 2, 12, 8, kWindows), /*theta=*/0)));
}

TEST(DensePolicyTest, EveryLayerHasItsRotation) {
  const AttentionGeometry two = WithOtherRotary(TestGeometry(4, 2, 12, 8, kWindows), /*theta=*/30);
  ExpectEveryTokenSeesItsWindow(two);
  ExpectEveryTokenSeesItsWindow(WithOtherRotary(two, /*theta=*/0));
}

TEST(DensePolicyTest, AlibiCountsPositionsInTheText) {
  for (const bool in_bf16 : {false, true}) {
    ExpectEveryTokenSeesItsWindow(WithAlibi(TestGeometry(4, 2, 12, 8, kWindows), in_bf16));
  }
}

// Layers see the keys that an index of their own chose, the last one those of the layer before it.
TEST(DensePolicyTest, EveryTokenSeesWhatTheModelChooses) {
  for (const int64_t best : {1, 9, 70, 149, 150}) {
    const AttentionGeometry geometry =
        WithKeyIndex(WithValuesInKeys(TestGeometry(4, 1, 28, 8, {0, 0, 0})), best);
    const TestText text(geometry, kTokens, 1);
    for (const int64_t chunk : {1, 40, 150}) {
      const auto out = ReadText(*Make(geometry, kTokens), text, kTokens, chunk, /*threads=*/2);
      size_t index = 0;
      for (int64_t t = 0; t < kTokens; ++t) {
        for (int64_t layer = 0; layer < geometry.layers; ++layer) {
          const std::vector<SeenKey> keys = text.Chosen(layer, t);
          ASSERT_EQ(std::ssize(keys), std::min(best, t + 1));
          for (int64_t head = 0; head < 4; ++head) {
            for (const double expected : text.Attend(layer, head, t, t, keys)) {
              ASSERT_NEAR(out[index++], expected, 2e-6)
                  << "token " << t << " layer " << layer << " best " << best;
            }
          }
        }
      }
    }
  }
}

TEST(DensePolicyTest, AStepReadsTheIndexAndWhatItChooses) {
  const AttentionGeometry geometry =
      WithKeyIndex(WithValuesInKeys(TestGeometry(4, 1, 28, 8, {0, 0, 0})), 9);
  const TestText text(geometry, 130, 3);
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const int64_t row = layout.head_bytes() / 64;
  const auto cache = Make(geometry, 130);
  ReadText(*cache, text, 8, 8);
  ReadText(*cache, text, 9, 1);
  EXPECT_EQ(cache->Stats().read_bytes, 3 * 9 * row);
  ReadText(*cache, text, 129, 60);
  ReadText(*cache, text, 130, 1);
  EXPECT_EQ(cache->Stats().read_bytes, 3 * 9 * row + 2 * 3 * layout.index_bytes());
  EXPECT_EQ(cache->Stats().met_keys, 3 * 9);
  EXPECT_EQ(cache->policy().SeenKeys(2, 129), 9);
  EXPECT_THAT(cache->policy().facts().explanation, HasSubstr("chooses the 9 that a token sees"));
}

TEST(DensePolicyTest, RefusesWhatExceedsTheContextWithItsNumbers) {
  const AttentionGeometry geometry = TestGeometry(2, 2, 8, 8, {0});
  const TestText text(geometry, 101, 2);
  const auto cache = Make(geometry, 100);
  EXPECT_EQ(cache->limit_tokens(), 100);
  EXPECT_EQ(cache->policy().facts().max_kept_tokens, 100);
  const auto read_to = [&](int64_t end) {
    return ErrorOf(ErrorKind::kInput, [&] { ReadText(*cache, text, end, 101); });
  };
  EXPECT_THAT(read_to(101), HasSubstr("0 tokens and 101 more exceed the context of 100 tokens"));
  EXPECT_EQ(cache->Stats().bytes, 0);

  ReadText(*cache, text, 60, 60);
  const KvStats before = cache->Stats();
  EXPECT_THAT(read_to(101), HasSubstr("60 tokens and 41 more exceed the context of 100 tokens"));
  EXPECT_EQ(cache->length(), 60);
  EXPECT_EQ(cache->Stats().bytes, before.bytes);
  EXPECT_EQ(cache->Stats().read_bytes, before.read_bytes);
  ReadText(*cache, text, 100, 40);
  EXPECT_THAT(read_to(101), HasSubstr("100 tokens and 1 more"));
}

TEST(DensePolicyTest, MemoryFollowsTheText) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 12, {0, 0, 0});
  const TestText text(geometry, 300, 3);
  for (const KvType& type : kKvTypes) {
    const KvLayout layout = LayoutOf(geometry, type.dtype);
    const auto cache = Make(geometry, 300, type.dtype);
    for (const int64_t length : {1, 63, 64, 65, 128, 129, 300}) {
      ReadText(*cache, text, length, 64);
      const KvStats stats = cache->Stats();
      EXPECT_EQ(stats.policy, "dense");
      EXPECT_EQ(stats.seen, length);
      EXPECT_EQ(stats.kept, length);
      EXPECT_TRUE(stats.dropped.empty());
      EXPECT_EQ(stats.bytes, layout.BytesFor(length));
    }
    cache->Truncate(65);
    EXPECT_EQ(cache->Stats().bytes, layout.BytesFor(65));
    EXPECT_EQ(cache->Stats().kept, 65);
    cache->Truncate(0);
    EXPECT_EQ(cache->Stats().bytes, 0);
    EXPECT_EQ(ErrorOf([&] { cache->Truncate(1); }).kind(), ErrorKind::kUnsupported);
    EXPECT_EQ(ErrorOf([&] { cache->Truncate(-1); }).kind(), ErrorKind::kUnsupported);
  }
}

// A layer with chunks reads the chunk of the last token.
TEST(DensePolicyTest, AStepReadsItsChunk) {
  const AttentionGeometry geometry = InChunks(TestGeometry(4, 2, 12, 12, {0, 50}));
  const TestText text(geometry, 300, 3);
  const int64_t row = LayoutOf(geometry, DType::kF32).page_bytes() / 64;
  const auto cache = Make(geometry, 300);
  for (int64_t length = 1; length <= 300; ++length) {
    ReadText(*cache, text, length, 1);
    const int64_t in_chunk = (length - 1) % 50 + 1;
    ASSERT_EQ(cache->Stats().read_bytes, (length + in_chunk) * row);
    ASSERT_EQ(cache->policy().SeenKeys(1, length - 1), in_chunk);
  }
}

// A layer with a window reads its window.
TEST(DensePolicyTest, AStepReadsWhatItsRowsSeeOnce) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 12, {0, 10});
  const TestText text(geometry, 300, 3);
  for (const KvType& type : kKvTypes) {
    const int64_t row = LayoutOf(geometry, type.dtype).page_bytes() / 64;
    const auto cache = Make(geometry, 300, type.dtype);
    EXPECT_EQ(cache->Stats().read_bytes, 0);
    ReadText(*cache, text, 200, 200);
    EXPECT_EQ(cache->Stats().read_bytes, (200 + 200) * row);
    ReadText(*cache, text, 201, 1);
    EXPECT_EQ(cache->Stats().read_bytes, (201 + 10) * row);
    ReadText(*cache, text, 205, 4);
    EXPECT_EQ(cache->Stats().read_bytes, (205 + 13) * row);
  }
}

TEST(DensePolicyTest, TakesNoArguments) {
  const AttentionGeometry geometry = TestGeometry(2, 2, 8, 8, {0});
  const Error error = ErrorOf([&] { MakePolicy(geometry, {.spec = "dense:4+4", .context = 8}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), HasSubstr("\"4+4\""));
}

}  // namespace
}  // namespace godwit::dense_test
