#include "attention/policies/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "attention/policies/blocks_test_support.h"

namespace godwit::blocks_test {
namespace {

using ::testing::HasSubstr;

// A budget, and the numbers of blocks that the header derives from it.
struct Budget {
  int64_t block, initial, local, count;
  bool separate;
  int64_t token_step = 1, layer_step = 1;
  bool estimate = false;
  bool gradual = false, sums = false;

  // A block's parts: 64 with one or two keys each, or each of its tokens.
  int64_t Parts() const { return std::min<int64_t>(block, 64); }
  std::string Spec() const {
    return fmt::format(
        "blocks:block_size={},initial={},local_windows_len={},second_block_count={},"
        "dense_layer_num=1,token_step={},layer_step={},"
        "representative_type=MEAN,representative_num={},head_select_mode={},estimate={},"
        "gradual={},sum_scores={}",
        block, initial, local, count, token_step, layer_step, Parts(),
        separate ? "SEPARATE" : "SHARED", estimate ? "True" : "False", gradual ? "True" : "False",
        sums ? "True" : "False");
  }
  int64_t InitialBlocks() const { return (initial + block - 1) / block; }
  int64_t FirstLocal(int64_t t) const { return std::max<int64_t>(0, t + 1 - local) / block; }
  int64_t PartTokens() const { return block / Parts(); }
  // The blocks that the token at t sees of those that `chooser` chose.
  int64_t CountAt(int64_t t, int64_t chooser) const {
    const int64_t replaced = gradual ? FirstLocal(t) - FirstLocal(chooser) : 0;
    return std::max<int64_t>(0, count - replaced);
  }
  bool Chooses(int64_t t) const { return FirstLocal(t) > InitialBlocks() + count; }
  // The token that chooses for the token at t.
  int64_t ChooserOf(int64_t t, int64_t question_begin) const {
    int64_t chooser = t;
    while (chooser % token_step != 0 && chooser > question_begin && Chooses(chooser - 1)) --chooser;
    return chooser;
  }
};

// Four heads share two KV heads. The first layer is dense by the spec. The third has the model's
// own window.
constexpr int64_t kHeads = 4, kTokens = 640, kWindow = 9;
AttentionGeometry Model() { return TestGeometry(kHeads, 2, 12, 8, {0, 0, kWindow, 0}); }
constexpr int64_t kChooses = 1;  // the first layer that chooses

struct Choice {
  std::set<int64_t> blocks;
  double margin;  // to the best block left out
};

// The `most` best blocks of query heads [begin, end) together for the token at t.
Choice BestBlocks(const TestText& text, const Budget& budget, int64_t t, int64_t layer,
                  int64_t begin, int64_t end, int64_t most) {
  const int64_t local = budget.FirstLocal(t);
  std::vector<double> worth(local, -1e9), sums(local * budget.Parts());
  const std::vector<SeenKey> keys = KeysIn(0, local * budget.block);
  for (int64_t head = begin; head < end; ++head) {
    const auto scores = text.Scores(layer, head, t, t, keys);
    // The score of a mean key is the mean score. ALiBi counts from a part's end, a constant for
    // all.
    std::vector<double> pages(local * budget.Parts());
    for (const SeenKey& key : keys) {
      pages[key.token / budget.PartTokens()] +=
          scores[key.token] / static_cast<double>(budget.PartTokens());
    }
    double sum = 0;
    for (const double score : pages) sum += std::exp(score);
    for (size_t page = 0; page < pages.size(); ++page) {
      double& of_block = worth[page / static_cast<size_t>(budget.Parts())];
      sums[page] += pages[page];
      of_block = std::max(of_block, pages[page] - std::log(sum));
    }
  }
  if (budget.sums) {
    for (int64_t block = 0; block < local; ++block) {
      const auto of_block = sums.begin() + block * budget.Parts();
      worth[block] = *std::max_element(of_block, of_block + budget.Parts());
    }
  }
  std::vector<std::pair<double, int64_t>> order;
  for (int64_t block = budget.InitialBlocks(); block < local; ++block) {
    order.emplace_back(-worth[block], block);
  }
  std::ranges::sort(order);
  const auto count = static_cast<size_t>(most);
  Choice choice{.blocks = {}, .margin = 1};
  if (count > 0) choice.margin = order[count].first - order[count - 1].first;
  for (size_t i = 0; i < count; ++i) choice.blocks.insert(order[i].second);
  return choice;
}

class BlocksPolicyTest : public testing::TestWithParam<Budget> {};

// The keys that a head of the token at t sees. Empty if int8 rounding might have decided.
std::vector<SeenKey> SeenBy(const TestText& text, const Budget& budget, int64_t question_begin,
                            int64_t t, int64_t layer, int64_t head) {
  if (layer == 2) return KeysIn(std::max<int64_t>(0, t + 1 - kWindow), t + 1);
  if (layer == 0 || t < question_begin || !budget.Chooses(t)) return KeysIn(0, t + 1);
  const int64_t begin = budget.separate ? head / 2 * 2 : 0;
  const int64_t chooser = budget.ChooserOf(t, question_begin);
  const Choice choice =
      BestBlocks(text, budget, chooser, budget.layer_step == 2 ? kChooses : layer, begin,
                 begin + (budget.separate ? 2 : kHeads), budget.CountAt(t, chooser));
  // Rounding to int8 moves scores by 0.003.
  if (choice.margin < 0.015) return {};
  std::vector<SeenKey> keys;
  for (int64_t key = 0; key <= t; ++key) {
    const int64_t block = key / budget.block;
    if (block < budget.InitialBlocks() || block >= budget.FirstLocal(chooser) ||
        choice.blocks.contains(block)) {
      keys.push_back({key, key});
    }
  }
  return keys;
}

// The keys missing in `keys`, block by block, if they are estimated.
std::vector<std::vector<SeenKey>> OthersThan(const std::vector<SeenKey>& keys, const Budget& budget,
                                             int64_t layer, int64_t t) {
  if (!budget.estimate || layer == 2) return {};
  std::vector<std::vector<SeenKey>> others;
  size_t next = 0;
  for (int64_t begin = 0; begin <= t; begin += budget.block) {
    if (keys[next].token == begin) {
      while (next < keys.size() && keys[next].token < begin + budget.block) ++next;
    } else {
      others.push_back(KeysIn(begin, begin + budget.block));
    }
  }
  return others;
}

void ExpectRowsSee(const AttentionGeometry& geometry, const Budget& budget,
                   int64_t question_begin) {
  const TestText text(geometry, kTokens, 1);
  int chosen = 0, unsure = 0;
  for (const int64_t chunk : {1, 40, 640}) {
    const auto out =
        ReadText(*BlocksText(geometry, budget.Spec(), question_begin), text, kTokens, chunk);
    size_t index = 0;
    for (int64_t t = 0; t < kTokens; ++t) {
      const bool turns = t > 0 && budget.Chooses(t) != budget.Chooses(t - 1);
      const bool looked_at = t % 37 == 0 || t % 64 == 63 || turns || t == question_begin;
      for (int64_t layer = 0; layer < geometry.layers; ++layer) {
        for (int64_t head = 0; head < kHeads; ++head, index += 12) {
          if (!looked_at) continue;
          const auto keys = SeenBy(text, budget, question_begin, t, layer, head);
          chosen += layer % 2 == 1 && std::ssize(keys) < t + 1 ? 1 : 0;
          unsure += keys.empty() ? 1 : 0;
          if (keys.empty()) continue;
          const auto expected =
              text.Attend(layer, head, t, t, keys, OthersThan(keys, budget, layer, t));
          for (size_t d = 0; d < expected.size(); ++d) {
            ASSERT_NEAR(out[index + d], expected[d], 2e-6)
                << "token " << t << " layer " << layer << " head " << head << " of " << keys.size()
                << " keys";
          }
        }
      }
    }
  }
  EXPECT_GT(chosen, 2 * unsure);
}

TEST_P(BlocksPolicyTest, TheQuestionSeesItsBlocksAndTheContextAll) {
  for (const int64_t question_begin : {0, 500}) ExpectRowsSee(Model(), GetParam(), question_begin);
}

TEST_P(BlocksPolicyTest, WithAlibi) {
  ExpectRowsSee(WithAlibi(Model(), /*in_bf16=*/false), GetParam(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Budgets, BlocksPolicyTest,
    testing::Values(Budget{64, 0, 1, 1, true}, Budget{64, 64, 100, 2, true},
                    Budget{64, 70, 64, 3, false}, Budget{128, 1, 130, 1, true},
                    Budget{64, 0, 1, 2, true, 3, 1}, Budget{64, 64, 20, 2, true, 1, 2},
                    Budget{64, 0, 1, 2, false, 100, 2}, Budget{64, 64, 100, 2, true, 1, 1, true},
                    Budget{128, 1, 130, 1, false, 3, 2, true}, Budget{32, 70, 64, 3, false},
                    Budget{8, 0, 1, 2, true, 3, 2}, Budget{1, 3, 50, 2, true},
                    Budget{1, 0, 1, 5, false, 100, 1},
                    // TokenSwift's: all are replaced after five tokens, and some time before it.
                    Budget{1, 3, 1, 5, true, 5, 1, false, true, true},
                    Budget{1, 0, 7, 4, false, 9, 2, false, true, false},
                    Budget{64, 0, 1, 2, true, 100, 1, false, true, true},
                    Budget{8, 0, 1, 3, false, 1, 1, false, false, true}),
    [](const auto& info) {
      const Budget& b = info.param;
      return fmt::format("{}_of_{}_{}_and_{}_{}_steps_{}_{}{}{}{}", b.count, b.block, b.initial,
                         b.local, b.separate ? "SEPARATE" : "SHARED", b.token_step, b.layer_step,
                         b.estimate ? "_estimated" : "", b.gradual ? "_gradual" : "",
                         b.sums ? "_sums" : "");
    });

// The prefill's window holds the whole context here.
TEST(BlocksPolicyPrefill, AsksAsIfReadByItself) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, kWindow});
  const TestText text(geometry, kTokens, 7);
  const std::string spec = "blocks:initial=0,local_windows_len=1,second_block_count=2";
  const auto alone = BlocksText(geometry, spec, 500);
  const auto read = NewText(
      geometry,
      {.spec = spec, .kv_type = DType::kF32, .context = kBlocksContext, .prefill = "window:4096"});
  read->SetQuestion(500);
  EXPECT_EQ(ReadText(*read, text, kTokens, 64), ReadText(*alone, text, kTokens, 64));
  EXPECT_EQ(read->Stats().bytes, alone->Stats().bytes);
  EXPECT_EQ(read->Stats().read_bytes, alone->Stats().read_bytes);
  EXPECT_GT(alone->Stats().bytes, alone->cache().bytes());
}

TEST(BlocksPolicyRefusals, HeadsThatAreTooWide) {
  const auto make = [](const char* spec, int64_t head_dim) {
    MakePolicy(TestGeometry(1, 1, head_dim, 0, {0}), {.spec = spec, .context = kBlocksContext});
  };
  EXPECT_EQ(ErrorOf(ErrorKind::kUnsupported, [&] { make("blocks:meanstd", 513); }),
            "the KV policy blocks:representative_type=MEANSTD needs heads of at most 512 "
            "dimensions, and this model's heads have 513");
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [&] { make("blocks:representative_type=MEAN", 1025); }),
      HasSubstr("at most 1024 dimensions, and this model's heads have 1025"));
  make("blocks", 512);
  make("blocks:representative_type=MEAN", 1024);
}

TEST(BlocksPolicyRefusals, TwoVectorsOfABlockBesideKeysAlone) {
  const AttentionGeometry geometry = WithValuesInKeys(TestGeometry(2, 1, 20, 8, {0}));
  const auto make = [&](const char* spec, DType kv_type) {
    MakePolicy(geometry, {.spec = spec, .kv_type = kv_type, .context = kBlocksContext});
  };
  EXPECT_EQ(
      ErrorOf(ErrorKind::kUnsupported, [&] { make("blocks:quest", DType::kBF16); }),
      "the KV policy blocks:representative_type=QUEST keeps 2 vectors for a block or a "
      "group of blocks, which do not fit into pages of this model's keys in bf16: use a wider "
      "KV type");
  make("blocks:quest", DType::kF32);
  make("blocks:infllm", DType::kI8);
}

TEST(BlocksPolicyRefusals, TwoVectorsOfABlockBesideFourBits) {
  const AttentionGeometry geometry = TestGeometry(2, 1, 64, 64, {0});
  const auto make = [&](const char* spec, DType kv_type) {
    MakePolicy(geometry, {.spec = spec, .kv_type = kv_type, .context = kBlocksContext});
  };
  for (const DType kv_type : {DType::kI8I4, DType::kI4}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { make("blocks:quest", kv_type); }),
                HasSubstr(fmt::format("keys and values in {}", KvTypeName(kv_type))));
    make("blocks", kv_type);
    make("blocks:infllm", kv_type);
  }
  make("blocks:quest", DType::kI8);
}

TEST(BlocksPolicyRefusals, ScoresThatTheModelCaps) {
  AttentionGeometry geometry = TestGeometry(1, 1, 8, 8, {0});
  geometry.shape.score_cap = 50;
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [&] { MakePolicy(geometry, {.spec = "blocks", .context = 100}); }),
              HasSubstr("this model caps scores at 50: use dense or sinks"));
}

TEST(BlocksPolicyRefusals, TextLongerThanTheContext) {
  const AttentionGeometry geometry = TestGeometry(1, 1, 8, 8, {0});
  const TestText text(geometry, 101, 6);
  const auto cache = NewText(geometry, {.spec = "blocks", .kv_type = DType::kF32, .context = 100});
  EXPECT_EQ(cache->limit_tokens(), 100);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ReadText(*cache, text, 101, 101); }),
              HasSubstr("0 tokens and 101 more exceed the context of 100 tokens"));
}

}  // namespace
}  // namespace godwit::blocks_test
