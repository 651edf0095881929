#include "attention/core/attention_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "attention/attention_test_support.h"
#include "base/test_support.h"

namespace godwit::attention_map_test {
namespace {

constexpr int64_t kTokens = 70, kHeads = 4;

void ReadInto(const AttentionGeometry& geometry, const TestText& text, int64_t tokens,
              int64_t chunk, AttentionMap& map) {
  const PolicyOptions options{.spec = "dense", .kv_type = DType::kF32, .context = kTokens};
  TextCache cache(geometry, MakeAttentionMapPolicy(geometry, MakePolicy(geometry, options), map),
                  std::make_shared<KvPool>(LayoutOf(geometry, DType::kF32)), kTokens,
                  /*int8_products=*/false);
  ReadText(cache, text, tokens, chunk);
  map.EndText();
}

// The first layer shows all keys, the second one the last 20.
TEST(AttentionMapTest, HasTheMeanWeightsOfTexts) {
  const AttentionGeometry geometry = TestGeometry(kHeads, 2, 12, 8, {0, 20});
  AttentionMap map(2, kHeads, kTokens);
  const TestText texts[] = {{geometry, kTokens, 5}, {geometry, kTokens, 6}};
  ReadInto(geometry, texts[0], kTokens, 64, map);
  ReadInto(geometry, texts[1], kTokens, 7, map);
  EXPECT_EQ(map.texts(), 2);
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t head = 0; head < kHeads; ++head) {
      for (int64_t query = 0; query < kTokens; ++query) {
        const int64_t first = layer == 0 ? 0 : std::max<int64_t>(0, query - 19);
        std::vector<SeenKey> keys;
        for (int64_t p = first; p <= query; ++p) keys.push_back({p, p});
        std::vector<double> expected(kTokens);
        for (const TestText& text : texts) {
          const auto scores = text.Scores(layer, head, query, query, keys);
          double sum = 0;
          for (size_t i = 0; i < keys.size(); ++i) sum += std::exp(scores[i]);
          for (size_t i = 0; i < keys.size(); ++i) {
            expected[first + static_cast<int64_t>(i)] += 0.5 * std::exp(scores[i]) / sum;
          }
        }
        for (int64_t key = 0; key < kTokens; ++key) {
          ASSERT_NEAR(map.Mean(layer, head, query, key), expected[key], 1e-5)
              << layer << " " << head << " " << query << " " << key;
        }
      }
    }
  }
}

TEST(AttentionMapTest, SumsTheFirstKeys) {
  const AttentionGeometry geometry = TestGeometry(kHeads, 2, 12, 8, {0});
  AttentionMap map(1, kHeads, 10);
  ReadInto(geometry, {geometry, 10, 5}, 10, 10, map);
  double expected = 0;
  for (int64_t query = 5; query < 10; ++query) {
    for (int64_t key = 0; key < 4; ++key) expected += map.Mean(0, 3, query, key) / 5;
  }
  EXPECT_NEAR(map.MeanOfFirst(0, 3, 5, 4), expected, 1e-12);
  EXPECT_GT(expected, 0.1);
  EXPECT_NEAR(map.MeanOfFirst(0, 3, 5, 10), 1, 1e-12) << "weights sum to 1";
}

TEST(AttentionMapTest, RefusesLayersOfDifferentHeads) {
  AttentionGeometry geometry = TestGeometry(kHeads, 2, 12, 8, {0});
  geometry.readers = {1};
  AttentionMap map(1, kHeads, 10);
  ErrorOf(ErrorKind::kUnsupported, [&] {
    MakeAttentionMapPolicy(
        geometry, MakePolicy(TestGeometry(kHeads, 2, 12, 8, {0}), {.spec = "dense", .context = 10}),
        map);
  });
}

}  // namespace
}  // namespace godwit::attention_map_test
