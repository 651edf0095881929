#include "attention/core/recall.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "attention/attention_test_support.h"

namespace godwit::recall_test {
namespace {

constexpr int64_t kTokens = 300, kAsked = 290;

// The second layer has the model's own window.
AttentionGeometry Model() { return TestGeometry(4, 2, 12, 8, {0, 20}); }

std::unique_ptr<TextCache> Watch(const AttentionGeometry& geometry,
                                 const std::vector<std::string>& specs,
                                 std::vector<Recall>& recalls) {
  PolicyOptions options{.kv_type = DType::kF32, .context = kTokens};
  std::vector<MeasuredPolicy> measured;
  recalls.resize(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    options.spec = specs[i];
    measured.push_back({MakePolicy(geometry, options), &recalls[i]});
  }
  options.spec = "dense";
  auto policy = MakeRecallPolicy(geometry, MakePolicy(geometry, options), std::move(measured));
  auto text = std::make_unique<TextCache>(geometry, std::move(policy),
                                          std::make_shared<KvPool>(LayoutOf(geometry, DType::kF32)),
                                          kTokens, /*int8_products=*/false);
  text->SetQuestion(kAsked);
  return text;
}

struct Expected {
  std::vector<double> held;
  double weight = 0;
};

// The recall in the first layer of a policy that shows the token at t the positions in `sees`.
template <typename Sees>
Expected ExpectedOf(const TestText& text, const Sees& sees) {
  Expected expected{.held = std::vector<double>(Recall::kHeaviest.size())};
  for (int64_t t = kAsked; t < kTokens; ++t) {
    std::vector<SeenKey> keys;
    for (int64_t p = 0; p <= t; ++p) keys.push_back({p, p});
    for (int64_t head = 0; head < 4; ++head) {
      const auto scores = text.Scores(0, head, t, t, keys);
      std::vector<std::pair<double, int64_t>> order;
      double sum = 0;
      for (int64_t p = 0; p <= t; ++p) {
        order.emplace_back(-scores[p], p);
        sum += std::exp(scores[p]);
      }
      std::ranges::sort(order);
      for (size_t i = 0; i < order.size(); ++i) {
        const bool seen = sees(t, order[i].second);
        expected.weight += seen ? std::exp(-order[i].first) / sum : 0;
        for (size_t k = 0; k < expected.held.size(); ++k) {
          const auto most = std::min<int64_t>(Recall::kHeaviest[k], t + 1);
          if (seen && static_cast<int64_t>(i) < most) {
            expected.held[k] += 1.0 / static_cast<double>(most);
          }
        }
      }
    }
  }
  return expected;
}

void ExpectCounts(const AttentionGeometry& geometry) {
  const TestText text(geometry, kTokens, 5);
  std::vector<Recall> recalls;
  const auto cache = Watch(geometry, {"dense", "window:100", "sinks:4+36"}, recalls);
  ReadText(*cache, text, kTokens, 64);
  const Expected expected[] = {
      ExpectedOf(text, [](int64_t, int64_t) { return true; }),
      ExpectedOf(text, [](int64_t t, int64_t p) { return p >= t - 100; }),
      ExpectedOf(text, [](int64_t t, int64_t p) { return p < 4 || p >= t - 36; })};
  constexpr int64_t kHeads = (kTokens - kAsked) * 4;
  for (size_t i = 0; i < recalls.size(); ++i) {
    EXPECT_EQ(recalls[i].heads, kHeads);
    EXPECT_EQ(recalls[i].tokens, kTokens - kAsked);
    for (size_t k = 0; k < Recall::kHeaviest.size(); ++k) {
      EXPECT_NEAR(recalls[i].held[k], expected[i].held[k], 1e-9) << i << ": " << k;
    }
    EXPECT_NEAR(recalls[i].weight, expected[i].weight, 1e-3) << i;
  }
  EXPECT_NEAR(recalls[0].held[0], kHeads, 1e-9);
  EXPECT_EQ(recalls[1].seen_keys, kHeads * 101);
  EXPECT_EQ(recalls[2].seen_keys, kHeads * 41);
}

TEST(RecallTest, CountsTheHeaviestKeysThatAreSeen) { ExpectCounts(Model()); }
TEST(RecallTest, WithAlibi) { ExpectCounts(WithAlibi(Model(), /*in_bf16=*/false)); }

// A policy whose KV heads see different tokens, in the only layer without a window.
TEST(RecallTest, NamesTheWorstHeads) {
  const TestText text(Model(), kTokens, 5);
  std::vector<Recall> recalls;
  const std::string blocks = "blocks:initial=0,local_windows_len=1,second_block_count=1";
  const auto cache = Watch(Model(), {blocks, "dense"}, recalls);
  ReadText(*cache, text, kTokens, 64);
  const Recall& recall = recalls[0];
  ASSERT_EQ(recall.groups.size(), 4u);
  EXPECT_NEAR(recall.groups[0].held + recall.groups[1].held, recall.held[Recall::kNamed], 1e-9);
  const auto worst = recall.Worst(2, 5);
  ASSERT_EQ(worst.size(), 2u) << "of the layer with a window there are none";
  EXPECT_LT(worst[0].held, worst[1].held);
  const auto groups = recall.Groups(2);
  ASSERT_EQ(groups.size(), 2u);
  double weight = 0, error = 0;
  for (int64_t head = 0; head < 2; ++head) {
    const Recall::Named& named = groups[head];
    const Recall::Group& group = recall.groups[head];
    EXPECT_EQ(named.layer, 0);
    EXPECT_EQ(named.kv_head, head);
    EXPECT_EQ(named.held, group.held / static_cast<double>(group.heads));
    weight += group.weight;
    error += group.error;
  }
  EXPECT_NEAR(weight, recall.weight, 1e-9);
  EXPECT_NEAR(error, recall.error, 1e-9);
  for (const Recall::Named& head : worst) {
    EXPECT_EQ(head.held, groups[head.kv_head].held);
  }
  EXPECT_NE(worst[0].kv_head, worst[1].kv_head);
  EXPECT_EQ(recall.Worst(2, 1).size(), 1u);
  // The earlier of equals comes first.
  const auto all = recalls[1].Worst(2, 2);
  EXPECT_EQ(all[0].kv_head, 0);
  EXPECT_EQ(all[0].held, 1);
  EXPECT_EQ(all[1].kv_head, 1);
}

TEST(RecallTest, CountsTheBytesReadToChoose) {
  const TestText text(Model(), kTokens, 5);
  std::vector<Recall> recalls;
  const std::string blocks = "blocks:initial=0,local_windows_len=1,second_block_count=1";
  const auto cache = Watch(Model(), {blocks, "dense"}, recalls);
  ReadText(*cache, text, kTokens, 64);
  EXPECT_GT(recalls[0].index_bytes, 0);
  EXPECT_EQ(recalls[1].index_bytes, 0);
  // A token sees one block and the filled part of its own.
  int64_t seen = 0;
  for (int64_t t = kAsked; t < kTokens; ++t) seen += 4 * (64 + t % 64 + 1);
  EXPECT_EQ(recalls[0].seen_keys, seen);
}

// Expects the errors of the first layer to match texts read with each policy. Its queries are the
// same.
void ExpectErrors(const AttentionGeometry& geometry) {
  const TestText text(geometry, kTokens, 5);
  const std::string blocks = "blocks:initial=0,local_windows_len=1,second_block_count=1";
  const std::vector<std::string> specs = {"dense", blocks, blocks + ",estimate=True"};
  std::vector<Recall> recalls;
  ReadText(*Watch(geometry, specs, recalls), text, kTokens, 64);
  const int64_t dim = geometry.shape.value_dim(), row = geometry.layers * 4 * dim;
  const auto read = [&](const std::string& spec) {
    const auto cache =
        NewText(geometry, {.spec = spec, .kv_type = DType::kF32, .context = kTokens});
    cache->SetQuestion(kAsked);
    return ReadText(*cache, text, kTokens, 64);
  };
  const auto dense = read("dense");
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto out = read(specs[i]);
    double expected = 0;
    for (int64_t t = kAsked; t < kTokens; ++t) {
      for (int64_t head = 0; head < 4; ++head) {
        double error = 0, length = 0;
        for (int64_t d = 0; d < dim; ++d) {
          const auto at = static_cast<size_t>(t * row + head * dim + d);
          error += std::pow(double{out[at]} - double{dense[at]}, 2);
          length += std::pow(double{dense[at]}, 2);
        }
        expected += std::sqrt(error / length);
      }
    }
    EXPECT_NEAR(recalls[i].error, expected, 1e-4 * (1 + expected)) << specs[i];
  }
  EXPECT_LT(recalls[2].error, recalls[1].error);
}

TEST(RecallTest, MeasuresTheErrorOfAHead) {
  ExpectErrors(Model());
  ExpectErrors(WithAlibi(Model(), /*in_bf16=*/false));
  ExpectErrors(WithValuesInKeys(Model()));
}

TEST(RecallTest, TheTextIsReadByDense) {
  const TestText text(Model(), kTokens, 5);
  std::vector<Recall> recalls;
  const auto measured = Watch(Model(), {"sinks:4+36"}, recalls);
  const auto dense = NewText(Model(), {.kv_type = DType::kF32, .context = kTokens});
  EXPECT_EQ(ReadText(*measured, text, kTokens, 64), ReadText(*dense, text, kTokens, 64));
}

}  // namespace
}  // namespace godwit::recall_test
