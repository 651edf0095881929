#include "attention/policies/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "attention/attention_test_support.h"
#include "base/test_folder.h"
#include "kernels/kernel_table.h"

namespace godwit {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kContext = 4096;

std::unique_ptr<TextCache> Make(const AttentionGeometry& geometry, const std::string& spec,
                                int64_t ask_from = 0, std::shared_ptr<KvPool> pool = nullptr,
                                int64_t answer = INT64_MAX) {
  auto text = NewText(geometry, {.spec = spec, .kv_type = DType::kF32, .context = kContext},
                      std::move(pool));
  text->AskFrom(ask_from, answer);
  return text;
}

// A budget, and what it comes to in words of the header.
struct Budget {
  int64_t block, initial, local, count;
  bool separate;
  int64_t token_step = 1, layer_step = 1;

  // With 64 parts in a block, of a key or two.
  std::string Spec() const {
    return fmt::format(
        "blocks:block_size={},initial={},local_windows_len={},second_block_count={},"
        "dense_layer_num=1,token_step={},layer_step={},"
        "representative_type=MEAN,representative_num=64,head_select_mode={}",
        block, initial, local, count, token_step, layer_step, separate ? "SEPARATE" : "SHARED");
  }
  int64_t InitialBlocks() const { return (initial + block - 1) / block; }
  int64_t FirstLocal(int64_t t) const { return std::max<int64_t>(0, t + 1 - local) / block; }
  int64_t PageTokens() const { return block / 64; }
  bool Chooses(int64_t t) const { return FirstLocal(t) > InitialBlocks() + count; }
  // The token that chooses for the one at t.
  int64_t ChooserOf(int64_t t, int64_t ask_from) const {
    int64_t chooser = t;
    while (chooser % token_step != 0 && chooser > ask_from && Chooses(chooser - 1)) --chooser;
    return chooser;
  }
};

// Four heads, two of a KV head each. The first layer is dense by the spec, the third has a window
// of the model's own.
constexpr int64_t kHeads = 4, kTokens = 640, kWindow = 9;
AttentionGeometry Model() { return TestGeometry(kHeads, 2, 12, 8, {0, 0, kWindow, 0}); }
constexpr int64_t kChooses = 1;  // the first layer that chooses

std::vector<SeenKey> KeysIn(int64_t begin, int64_t end) {
  std::vector<SeenKey> keys;
  for (int64_t key = begin; key < end; ++key) keys.push_back({key, key});
  return keys;
}

struct Choice {
  std::set<int64_t> blocks;
  double margin;  // to the best block that is left
};

// For query heads [begin, end) of the token at t, which choose together.
Choice BestBlocks(const TestText& text, const Budget& budget, int64_t t, int64_t layer,
                  int64_t begin, int64_t end) {
  const int64_t local = budget.FirstLocal(t);
  std::vector<double> worth(static_cast<size_t>(local), -1e9);
  const std::vector<SeenKey> keys = KeysIn(0, local * budget.block);
  for (int64_t head = begin; head < end; ++head) {
    const auto scores = text.Scores(layer, head, t, t, keys);
    // A mean key's score is the mean score. ALiBi counts from a part's end: a constant for all.
    std::vector<double> pages(static_cast<size_t>(local * 64));
    for (const SeenKey& key : keys) {
      pages[static_cast<size_t>(key.token / budget.PageTokens())] +=
          scores[static_cast<size_t>(key.token)] / static_cast<double>(budget.PageTokens());
    }
    double sum = 0;
    for (const double score : pages) sum += std::exp(score);
    for (size_t page = 0; page < pages.size(); ++page) {
      worth[page / 64] = std::max(worth[page / 64], pages[page] - std::log(sum));
    }
  }
  std::vector<std::pair<double, int64_t>> order;
  for (int64_t block = budget.InitialBlocks(); block < local; ++block) {
    order.emplace_back(-worth[static_cast<size_t>(block)], block);
  }
  std::ranges::sort(order);
  const auto count = static_cast<size_t>(budget.count);
  Choice choice{.blocks = {}, .margin = order[count].first - order[count - 1].first};
  for (size_t i = 0; i < count; ++i) choice.blocks.insert(order[i].second);
  return choice;
}

class BlocksPolicyTest : public testing::TestWithParam<Budget> {};

// The keys that a head of the token sees, or none where int8 might have decided.
std::vector<SeenKey> SeenBy(const TestText& text, const Budget& budget, int64_t ask_from, int64_t t,
                            int64_t layer, int64_t head) {
  if (layer == 2) return KeysIn(std::max<int64_t>(0, t + 1 - kWindow), t + 1);
  if (layer == 0 || t < ask_from || !budget.Chooses(t)) return KeysIn(0, t + 1);
  const int64_t begin = budget.separate ? head / 2 * 2 : 0;
  const int64_t chooser = budget.ChooserOf(t, ask_from);
  const Choice choice = BestBlocks(text, budget, chooser, budget.layer_step == 2 ? kChooses : layer,
                                   begin, begin + (budget.separate ? 2 : kHeads));
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

void ExpectRowsSee(const AttentionGeometry& geometry, const Budget& budget, int64_t ask_from) {
  const TestText text(geometry, kTokens, 1);
  int chosen = 0, unsure = 0;
  for (const int64_t chunk : {1, 40, 640}) {
    const auto out = ReadText(*Make(geometry, budget.Spec(), ask_from), text, kTokens, chunk);
    size_t index = 0;
    for (int64_t t = 0; t < kTokens; ++t) {
      const bool turns = t > 0 && budget.Chooses(t) != budget.Chooses(t - 1);
      const bool looked_at = t % 37 == 0 || t % 64 == 63 || turns || t == ask_from;
      for (int64_t layer = 0; layer < geometry.layers; ++layer) {
        for (int64_t head = 0; head < kHeads; ++head, index += 12) {
          if (!looked_at) continue;
          const auto keys = SeenBy(text, budget, ask_from, t, layer, head);
          chosen += layer % 2 == 1 && std::ssize(keys) < t + 1 ? 1 : 0;
          unsure += keys.empty() ? 1 : 0;
          if (keys.empty()) continue;
          const auto expected = text.Attend(layer, head, t, t, keys);
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
  for (const int64_t ask_from : {0, 500}) ExpectRowsSee(Model(), GetParam(), ask_from);
}

TEST_P(BlocksPolicyTest, WithAlibi) {
  ExpectRowsSee(WithAlibi(Model(), /*in_bf16=*/false), GetParam(), 0);
}

INSTANTIATE_TEST_SUITE_P(Budgets, BlocksPolicyTest,
                         testing::Values(Budget{64, 0, 1, 1, true}, Budget{64, 64, 100, 2, true},
                                         Budget{64, 70, 64, 3, false}, Budget{128, 1, 130, 1, true},
                                         Budget{64, 0, 1, 2, true, 3, 1},
                                         Budget{64, 64, 20, 2, true, 1, 2},
                                         Budget{64, 0, 1, 2, false, 100, 2}),
                         [](const auto& info) {
                           const Budget& b = info.param;
                           return fmt::format("{}_of_{}_{}_and_{}_{}_steps_{}_{}", b.count, b.block,
                                              b.initial, b.local,
                                              b.separate ? "SEPARATE" : "SHARED", b.token_step,
                                              b.layer_step);
                         });

// Rows of one step look one at a time, each with blocks of its own.
TEST(BlocksPolicyStats, AStepReadsTheIndexAndWhatWasChosen) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0});
  const TestText text(geometry, 1000, 2);
  constexpr int64_t kTile = 64 * (2 * 12 + int64_t{sizeof(float)});  // of representatives
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const auto cache = Make(
      geometry, "blocks:local_windows_len=100,second_block_count=2,representative_type=MEANSTD");
  // 4 blocks and a window of 100 tokens.
  ReadText(*cache, text, 4 * 64 + 99, 64);
  EXPECT_EQ(cache->Stats().bytes, layout.BytesFor(4 * 64 + 99)) << "nothing to choose so far";
  ReadText(*cache, text, 999, 100);
  EXPECT_EQ(cache->Stats().bytes, layout.BytesFor(999) + layout.page_bytes());
  ReadText(*cache, text, 1000, 1);
  const KvStats stats = cache->Stats();
  EXPECT_EQ(stats.policy,
            "blocks:local_windows_len=100,second_block_count=2,representative_type=MEANSTD");
  EXPECT_EQ(stats.kept, 1000);
  EXPECT_EQ(stats.most_kept, kContext);
  // The row at 999: its window begins in block 14, before which there are 56 pages, one tile.
  const int64_t tokens = 64 + 2 * 64 + 1000 - 14 * 64;
  EXPECT_EQ(stats.read_bytes, tokens * layout.bytes_per_token() + 2 * kTile);
}

TEST(BlocksPolicyStats, LayersThatSeeAllOrAWindowHaveNoIndex) {
  const TestText text(Model(), kTokens, 2);
  const KvLayout layout = LayoutOf(Model(), DType::kF32);
  // Nor have those that see what another one chose.
  for (const int64_t layer_step : {1, 2}) {
    const auto cache = Make(Model(), fmt::format("blocks:local_windows_len=1,second_block_count=1,"
                                                 "dense_layer_num=1,layer_step={}",
                                                 layer_step));
    ReadText(*cache, text, kTokens, 64);
    EXPECT_EQ(cache->Stats().bytes,
              layout.BytesFor(kTokens) + (2 / layer_step) * layout.page_bytes());
  }
}

// The cache fits, its index does not.
TEST(BlocksPolicyMemory, WithoutRoomForTheIndexTheTextStaysAsItWas) {
  const std::string spec = "blocks:second_block_count=2";
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0});
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const TestText text(geometry, 2100, 3);
  const auto budget = std::make_shared<KvBudget>(layout.BytesFor(33 * 64));
  const auto cache = Make(geometry, spec, 2000, std::make_shared<KvPool>(layout, budget));
  ReadText(*cache, text, 2000, 500);
  const KvStats before = cache->Stats();
  const int64_t used = budget->used();
  const auto expect_as_before = [&] {
    EXPECT_EQ(cache->length(), 2000);
    EXPECT_EQ(cache->Stats().bytes, before.bytes);
    EXPECT_EQ(cache->Stats().read_bytes, before.read_bytes);
    EXPECT_EQ(budget->used(), used);
  };
  for (const int64_t tokens : {100, 200}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { cache->Reserve(tokens); }),
                HasSubstr("are taken"));
    expect_as_before();
  }
  StepRunner runner;
  const StepRows step{cache.get(), &text, RowRange(2000, 2100)};
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { runner.Run({&step, 1}); }), HasSubstr("are taken"));
  expect_as_before();

  cache->AskFrom(1800);
  cache->Truncate(1900);
  const auto fresh = Make(geometry, spec, 1800);
  ReadText(*fresh, text, 1900, 500);
  EXPECT_EQ(ReadText(*cache, text, 2000, 7), ReadText(*fresh, text, 2000, 7));
  EXPECT_EQ(budget->used(), layout.BytesFor(2000) + layout.page_bytes());
}

TEST(BlocksPolicyMemory, TheIndexOfAFileLiesInMemory) {
  const std::string spec = "blocks:second_block_count=2,local_windows_len=64";
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0});
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const TestText text(geometry, 2100, 3);
  const TempFolder folder;
  const auto memory = std::make_shared<KvBudget>(4 * layout.page_bytes());
  const auto file = std::make_shared<KvFile>(folder.path(), 1 << 26, memory);
  const auto cache = Make(geometry, spec, 2000, std::make_shared<KvPool>(layout, file));
  const auto reference = Make(geometry, spec, 2000);
  EXPECT_EQ(ReadText(*cache, text, 2000, 500), ReadText(*reference, text, 2000, 500));
  EXPECT_EQ(memory->used(), 0);
  const int64_t read_before = cache->Stats().file_read_bytes;
  EXPECT_EQ(ReadText(*cache, text, 2001, 1), ReadText(*reference, text, 2001, 1));
  EXPECT_EQ(memory->used(), cache->policy().bytes());
  EXPECT_GT(memory->used(), 0);
  // The index is made of all of it, once; after that the chosen blocks come.
  const int64_t made = cache->Stats().file_read_bytes;
  EXPECT_GE(made - read_before, 20 * layout.page_bytes());
  EXPECT_EQ(ReadText(*cache, text, 2002, 1), ReadText(*reference, text, 2002, 1));
  EXPECT_LE(cache->Stats().file_read_bytes - made, 8 * cache->cache().layout().page_bytes());
}

// What is weighed by its keys is announced, seen or not.
TEST(BlocksPolicyMemory, KeysThatAreWeighedComeFromAFile) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0});
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const TestText text(geometry, 2100, 3);
  const TempFolder folder;
  for (const char* spec :
       {"blocks:second_block_count=10,local_windows_len=64,top_p=0.001,head_select_mode=SHARED",
        "blocks:second_block_count=1,local_windows_len=64,head_select_mode=SHARED,"
        "preselect_block_count=10,preselect_block=True"}) {
    const auto memory = std::make_shared<KvBudget>(4 * layout.page_bytes());
    const auto file = std::make_shared<KvFile>(folder.path(), 1 << 26, memory);
    const auto cache = Make(geometry, spec, 2000, std::make_shared<KvPool>(layout, file), 2001);
    ReadText(*cache, text, 2002, 500);
    const int64_t before = cache->Stats().file_read_bytes;
    ReadText(*cache, text, 2003, 1);
    EXPECT_LE(cache->Stats().met_keys, 4 * 64 * geometry.shape.kv_heads);
    EXPECT_GE(cache->Stats().file_read_bytes - before, 8 * layout.page_bytes()) << spec;
  }
}

// Of the context a window is seen, here one in which all of it lies.
TEST(BlocksPolicyPrefill, AsksAsIfReadByItself) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, kWindow});
  const TestText text(geometry, kTokens, 7);
  const std::string spec = "blocks:initial=0,local_windows_len=1,second_block_count=2";
  const auto alone = Make(geometry, spec, 500);
  const auto read = NewText(
      geometry,
      {.spec = spec, .kv_type = DType::kF32, .context = kContext, .prefill = "window:4096"});
  read->AskFrom(500);
  EXPECT_EQ(ReadText(*read, text, kTokens, 64), ReadText(*alone, text, kTokens, 64));
  EXPECT_EQ(read->Stats().bytes, alone->Stats().bytes);
  EXPECT_EQ(read->Stats().read_bytes, alone->Stats().read_bytes);
  EXPECT_GT(alone->Stats().bytes, alone->cache().bytes());
}

// A token that chose for those after it is not forgotten while a text may go back behind it. Where
// it goes back farther, it goes back to one that chooses.
TEST(BlocksPolicySteps, ATextGoesBackToWhereItRemembersWhatWasChosen) {
  const std::string spec =
      "blocks:initial=0,local_windows_len=1,second_block_count=1,token_step=50,layer_step=2";
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 9), other(geometry, kTokens, 10);
  const auto cache = Make(geometry, spec, 210);
  ReadText(*cache, text, 519, 7);
  // What is chosen for the next token: at 210, where the question begins, 250, 300 and so on.
  const std::pair<int64_t, int64_t> lengths[] = {{519, 519}, {501, 501}, {500, 500}, {460, 460},
                                                 {449, 400}, {299, 250}, {249, 210}, {210, 210},
                                                 {209, 209}, {3, 3}};
  for (const auto& [length, back] : lengths) {
    EXPECT_EQ(cache->GoesBackTo(length, INT64_MAX), back) << length;
    EXPECT_EQ(cache->CanTruncate(length), back == length) << length;
    const auto fork = cache->Fork(), fresh = Make(geometry, spec, 210);
    fork->Truncate(back);
    ReadText(*fresh, text, back, 64);
    EXPECT_EQ(ReadText(*fork, other, kTokens, 9), ReadText(*fresh, other, kTokens, 64)) << length;
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { cache->Truncate(449); }),
              HasSubstr("cannot go back to 449 of 519 tokens"));
}

// The paths of a tree of which each has tokens that choose; the text goes on from one of them.
TEST(BlocksPolicySteps, APathOfATreeKeepsWhatItsOwnTokensChose) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 11), drafts(geometry, kTokens, 12);
  const std::string spec =
      "blocks:initial=0,local_windows_len=1,second_block_count=2,token_step=4,layer_step=2";
  StepRunner runner;
  for (const int64_t accepted : {9, 19}) {
    const auto cache = Make(geometry, spec), chain = Make(geometry, spec);
    ReadText(*cache, text, 301, 64);
    ReadText(*chain, text, 301, 1);
    StepRows tree{cache.get(), &drafts, RowRange(0, 20), {}};
    for (int32_t row = 0; row < 20; ++row) tree.parents.push_back(row % 10 == 0 ? -1 : row - 1);
    const auto rows = runner.Run({&tree, 1})[0];
    cache->Accept(accepted);
    const auto path = runner.Read(*chain, drafts, RowRange(accepted - 9, accepted + 1), 3);
    EXPECT_TRUE(std::ranges::equal(
        path, std::span(rows).subspan(accepted == 9 ? 0 : path.size(), path.size())))
        << accepted;
    // The choice at 308 is one of the path's, and shared up to 311.
    EXPECT_EQ(ReadText(*cache, text, 320, 2), ReadText(*chain, text, 320, 5)) << accepted;
  }
}

// Blocks [1, 6) as the last 20 tokens before kAnswer share their attention among whole blocks.
constexpr int64_t kAnswer = 500;
std::set<int64_t> Preselected(const TestText& text, int64_t layer, int64_t begin, int64_t end) {
  std::vector<double> worth(6);
  for (int64_t t = kAnswer - 20; t < kAnswer; ++t) {
    for (int64_t head = begin; head < end; ++head) {
      const auto scores = text.Scores(layer, head, t, t, KeysIn(0, 6 * 64));
      std::vector<double> masses(6);
      for (size_t key = 0; key < scores.size(); ++key) masses[key / 64] += std::exp(scores[key]);
      const double sum = std::accumulate(masses.begin(), masses.end(), 0.0);
      for (size_t b = 0; b < 6; ++b) worth[b] = std::max(worth[b], masses[b] / sum);
    }
  }
  std::vector<int64_t> order = {1, 2, 3, 4, 5};
  std::ranges::sort(order, [&](int64_t a, int64_t b) {
    return worth[static_cast<size_t>(a)] > worth[static_cast<size_t>(b)];
  });
  return {order.begin(), order.begin() + 3};
}

TEST(BlocksPolicyPreselect, TheAnswerSeesWhatTheQuestionChoseAndAllThatCameSince) {
  for (const bool separate : {true, false}) {
    const AttentionGeometry geometry = TestGeometry(kHeads, 2, 12, 8, {0, 0});
    const TestText text(geometry, 611, 13);
    const std::string spec = fmt::format(
        "blocks:local_windows_len=100,second_block_count=4,preselect_block_count=3,"
        "observation_window=20,preselect_block=True,head_select_mode={}",
        separate ? "SEPARATE" : "SHARED");
    for (const int64_t chunk : {1, 40, 611}) {
      const auto out = ReadText(*Make(geometry, spec, 400, nullptr, kAnswer), text, 611, chunk);
      for (int64_t t = kAnswer; t < 611; t += t == 546 ? 1 : 23) {
        for (int64_t layer = 0; layer < 2; ++layer) {
          for (int64_t head = 0; head < kHeads; ++head) {
            const int64_t begin = separate ? head / 2 * 2 : 0;
            const auto blocks = Preselected(text, layer, begin, separate ? begin + 2 : kHeads);
            std::vector<SeenKey> keys;
            for (int64_t key = 0; key <= t; ++key) {
              const int64_t block = key / 64;
              if (block == 0 || block >= 6 || blocks.contains(block)) keys.push_back({key, key});
            }
            const auto expected = text.Attend(layer, head, t, t, keys);
            for (int64_t d = 0; d < 12; ++d) {
              ASSERT_NEAR(out[static_cast<size_t>(((t * 2 + layer) * kHeads + head) * 12 + d)],
                          expected[static_cast<size_t>(d)], 2e-6)
                  << "token " << t << " layer " << layer << " head " << head;
            }
          }
        }
      }
    }
  }
}

// The question of another turn ends elsewhere, and its tokens are read again.
TEST(BlocksPolicyPreselect, AnotherQuestionChoosesAnew) {
  const AttentionGeometry geometry = TestGeometry(kHeads, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 14);
  const std::string spec =
      "blocks:local_windows_len=20,second_block_count=2,preselect_block_count=2,"
      "observation_window=20,preselect_block=True";
  const auto cache = Make(geometry, spec, 300, nullptr, 420);
  ReadText(*cache, text, 450, 50);
  EXPECT_EQ(cache->GoesBackTo(440, 420), 440) << "the same question";
  EXPECT_EQ(cache->GoesBackTo(440, 600), 420);
  EXPECT_EQ(cache->GoesBackTo(440, 410), 390);
  for (const auto& [length, ask_from, answer] :
       {std::tuple{440, 300, 420}, {420, 300, 600}, {390, 300, 410}, {300, 350, 500}}) {
    const auto fork = cache->Fork();
    fork->Truncate(length);
    fork->AskFrom(ask_from, answer);
    const auto fresh = Make(geometry, spec, ask_from, nullptr, answer);
    ReadText(*fresh, text, length, 64);
    EXPECT_EQ(ReadText(*fork, text, kTokens, 9), ReadText(*fresh, text, kTokens, 64)) << answer;
  }
  // One that ends elsewhere sees other things.
  EXPECT_NE(ReadText(*Make(geometry, spec, 300, nullptr, 420), text, kTokens, 64),
            ReadText(*Make(geometry, spec, 300, nullptr, 430), text, kTokens, 64));
}

// They share its index, and each goes on with keys of its own; so does a text that went back.
TEST(BlocksPolicyFork, GoesOnAsIfAlone) {
  const std::string spec =
      "blocks:initial=0,local_windows_len=1,second_block_count=2,"
      "representative_num=128,representative_type=MEANSTD";
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, 1200, 4), other(geometry, 1200, 5);
  const auto alone = [&](const TestText& rest, int64_t from) {
    const auto cache = Make(geometry, spec);
    ReadText(*cache, text, from, 300);
    return ReadText(*cache, rest, 1200, 40);
  };
  const auto cache = Make(geometry, spec);
  ReadText(*cache, text, 900, 100);
  const KvBudget& budget = cache->cache().pool().budget();
  const int64_t used = budget.used();
  EXPECT_EQ(used, cache->Stats().bytes);
  const auto fork = cache->Fork();
  EXPECT_EQ(fork->Stats().bytes, cache->Stats().bytes);
  EXPECT_EQ(budget.used(), used) << "all shared";
  EXPECT_EQ(ReadText(*fork, other, 1200, 7), alone(other, 900));
  const auto back = cache->Fork();
  EXPECT_EQ(ReadText(*cache, text, 1200, 50), alone(text, 900));
  back->Truncate(500);
  EXPECT_EQ(ReadText(*back, other, 1200, 64), alone(other, 500));
  cache->Truncate(700);
  EXPECT_EQ(ReadText(*cache, other, 1200, 64), alone(other, 700));
}

// Both branches of a tree fill a block, each for itself.
void ExpectBranchesAreAlone(const char* spec, int64_t length) {
  constexpr int64_t kDrafts = 70;
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, 1000, 8);
  const auto read = [&] {
    auto cache = Make(geometry, spec);
    ReadText(*cache, text, length, 300);
    return cache;
  };
  StepRows step{nullptr, &text, {}, {}};
  std::vector<float> expected;
  StepRunner runner;
  for (const int64_t from : {length, int64_t{800}}) {
    const auto rows = RowRange(from, from + kDrafts);
    const auto chain = runner.Read(*read(), text, rows, kDrafts);
    expected.insert(expected.end(), chain.begin(), chain.end());
    step.parents.push_back(-1);
    for (int64_t row = 1; row < kDrafts; ++row) {
      step.parents.push_back(static_cast<int32_t>(std::ssize(step.parents)) - 1);
    }
    step.rows.insert(step.rows.end(), rows.begin(), rows.end());
  }
  const auto cache = read();
  step.cache = cache.get();
  EXPECT_EQ(runner.Run({&step, 1})[0], expected) << spec;
}

TEST(BlocksPolicyTree, ABranchDoesNotSeeTheBlocksOfAnother) {
  ExpectBranchesAreAlone(
      "blocks:initial=0,local_windows_len=1,second_block_count=4,"
      "representative_num=128,representative_type=MEANSTD",
      645);
  ExpectBranchesAreAlone("blocks:initial=0,local_windows_len=1,second_block_count=4", 645);
}

// The first blocks, whose mean key is what signs are taken from, are drafts still.
TEST(BlocksPolicyTree, ABranchHasACentreOfItsOwn) {
  ExpectBranchesAreAlone("blocks:initial=0,local_windows_len=1,second_block_count=1", 100);
}

TEST(BlocksPolicyRefusals, HeadsThatAreTooWide) {
  const auto make = [](const char* spec, int64_t head_dim) {
    MakePolicy(TestGeometry(1, 1, head_dim, 0, {0}), {.spec = spec, .context = kContext});
  };
  EXPECT_EQ(ErrorOf(ErrorKind::kUnsupported, [&] { make("blocks:meanstd", 513); }),
            "the KV policy blocks:representative_type=MEANSTD needs heads of at most 512 "
            "dimensions, and this "
            "model's have 513");
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [&] { make("blocks:representative_type=MEAN", 1025); }),
      HasSubstr("at most 1024 dimensions, and this model's have 1025"));
  make("blocks", 512);
  make("blocks:representative_type=MEAN", 1024);
}

TEST(BlocksPolicyRefusals, WhatExceedsTheContext) {
  const AttentionGeometry geometry = TestGeometry(1, 1, 8, 8, {0});
  const TestText text(geometry, 101, 6);
  const auto cache = NewText(geometry, {.spec = "blocks", .kv_type = DType::kF32, .context = 100});
  EXPECT_EQ(cache->limit_tokens(), 100);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ReadText(*cache, text, 101, 101); }),
              HasSubstr("0 tokens and 101 more exceed the context of 100 tokens"));
}

}  // namespace
}  // namespace godwit
