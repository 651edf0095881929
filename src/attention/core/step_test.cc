#include "attention/core/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention_test_support.h"

namespace godwit::step_test {
namespace {

using ::testing::HasSubstr;

const AttentionGeometry kGeometry =
    WithOtherRotary(TestGeometry(4, 2, 12, 8, {0, 9}), /*theta=*/30);
const KvLayout kLayout = LayoutOf(kGeometry, DType::kF32);

std::unique_ptr<TextCache> Make(const std::string& spec = "dense", int64_t context = 4096,
                                std::shared_ptr<KvPool> pool = nullptr) {
  return NewText(kGeometry, {.spec = spec, .kv_type = DType::kF32, .context = context},
                 std::move(pool));
}

std::shared_ptr<KvPool> PoolOf(int64_t tokens) {
  // NewText takes 32 pages for a moment.
  EXPECT_GE(PagesFor(tokens) * kGeometry.layers, 32);
  return std::make_shared<KvPool>(kLayout, std::make_shared<KvBudget>(kLayout.BytesFor(tokens)));
}

TEST(AttentionStepTest, KnowsWhereEveryRowStands) {
  const TestText text(kGeometry, 100, 1);
  const auto first = Make(), second = Make(), tree = Make();
  ReadText(*first, text, 70, 70);
  ReadText(*tree, text, 5, 5);
  StepRunner runner;
  const std::vector<int32_t> tokens(7);
  const std::vector<int32_t> parents = {-1, 0, 1, 0, -1, 4, 3};
  const Segment segments[] = {{.tokens = std::span(tokens).first(3), .text = first.get()},
                              {.tokens = std::span(tokens).first(2), .text = second.get()},
                              {.tokens = tokens, .text = tree.get(), .parents = parents}};
  const AttentionStep step(runner.exec(), segments);
  const std::vector<int64_t> expected = {70, 71, 72, 0, 1, 5, 6, 7, 6, 5, 6, 7};
  for (int64_t row = 0; row < std::ssize(expected); ++row) {
    EXPECT_EQ(step.PositionOf(row), expected[row]) << "row " << row;
  }
}

// Texts before the refused one give back their reserved memory.
TEST(AttentionStepTest, ARefusalChangesNoText) {
  const TestText text(kGeometry, 1200, 2);
  const auto pool = PoolOf(1024);
  const auto first = Make("dense", 2000, pool), second = Make("sinks:4+300", 2000, pool);
  const auto narrow = Make("dense", 100, pool);
  for (TextCache* cache : {first.get(), second.get(), narrow.get()}) {
    ReadText(*cache, text, 90, 30);
  }
  const int64_t used = pool->budget().used();
  StepRunner runner;
  const auto refuse = [&](ErrorKind kind, std::vector<StepRows> rows) {
    const std::string message = ErrorOf(kind, [&] { runner.Run(rows); });
    EXPECT_EQ(pool->budget().used(), used);
    EXPECT_EQ(first->length(), 90);
    EXPECT_EQ(second->length(), 90);
    return message;
  };
  EXPECT_THAT(refuse(ErrorKind::kInput, {{first.get(), &text, RowRange(90, 500)},
                                         {narrow.get(), &text, RowRange(90, 101)}}),
              HasSubstr("90 tokens and 11 more exceed the context of 100 tokens"));
  EXPECT_THAT(refuse(ErrorKind::kMemory, {{first.get(), &text, RowRange(90, 600)},
                                          {second.get(), &text, RowRange(90, 600)}}),
              HasSubstr(" are taken"));
  // Some branches of the tree would fit.
  std::vector<int32_t> star(20, -1);
  EXPECT_THAT(refuse(ErrorKind::kMemory, {{second.get(), &text, RowRange(90, 91)},
                                          {first.get(), &text, RowRange(90, 110), star}}),
              HasSubstr(" are taken"));
  // Both texts go on as if nothing had happened.
  const auto result = runner.Run(std::vector<StepRows>{{first.get(), &text, RowRange(90, 120)},
                                                       {second.get(), &text, RowRange(90, 120)}});
  const auto fresh = Make();
  ReadText(*fresh, text, 90, 30);
  EXPECT_EQ(result[0], ReadText(*fresh, text, 120, 30));
}

TEST(AttentionStepTest, AStepThatIsNotEndedTakesNoMemory) {
  const TestText text(kGeometry, 400, 3);
  const auto chain = Make(), tree = Make();
  ReadText(*chain, text, 100, 100);
  ReadText(*tree, text, 100, 100);
  StepRunner runner;
  const KvStats before = chain->Stats();
  const StepRows rows[] = {{chain.get(), &text, RowRange(100, 300)},
                           {tree.get(), &text, {100, 101, 102}, {-1, 0, -1}}};
  runner.Run(rows, /*end=*/false);
  EXPECT_EQ(chain->length(), 100);
  EXPECT_EQ(chain->Stats().bytes, before.bytes);
  EXPECT_EQ(chain->Stats().read_bytes, before.read_bytes);
  EXPECT_EQ(tree->cache().pool().budget().used(), kLayout.BytesFor(100));
}

// A tree without accepted rows leaves no trace. The text goes on from its old end.
TEST(AttentionStepTest, DraftsThatAreNotAcceptedLeaveNoTrace) {
  const TestText text(kGeometry, 200, 4), drafts(kGeometry, 8, 5);
  const auto reference = Make();
  ReadText(*reference, text, 100, 100);
  const auto expected = ReadText(*reference, text, 200, 100);
  const auto cache = Make();
  ReadText(*cache, text, 100, 100);
  StepRunner runner;
  const StepRows tree{cache.get(), &drafts, RowRange(0, 8), {-1, 0, 0, 2, -1, 4, 5, 4}};
  for (int round = 0; round < 3; ++round) {
    runner.Run({&tree, 1});
    EXPECT_EQ(cache->length(), 100);
    EXPECT_EQ(cache->Stats().bytes, kLayout.BytesFor(100));
  }
  EXPECT_EQ(ReadText(*cache, text, 200, 100), expected);
  EXPECT_EQ(cache->cache().pool().budget().used(), kLayout.BytesFor(200)) << "branches are gone";
}

// Any row may be the last accepted one. The rows below it are forgotten.
TEST(AttentionStepTest, AcceptKeepsThePathToARow) {
  const TestText text(kGeometry, 100, 6), drafts(kGeometry, 9, 7), rest(kGeometry, 300, 8);
  const std::vector<int32_t> parents = {-1, 0, 1, 1, 0, 4, -1, 6, 7};
  for (const int64_t length : {0, 1, 60, 62, 63, 64}) {
    for (int64_t row = 0; row < 9; ++row) {
      std::vector<int64_t> path;
      for (int32_t r = static_cast<int32_t>(row); r >= 0; r = parents[r]) {
        path.insert(path.begin(), r);
      }
      const int64_t end = length + std::ssize(path);
      StepRunner runner;
      const auto chain = Make();
      ReadText(*chain, text, length, 64);
      runner.Read(*chain, drafts, path, 64);
      const auto expected = ReadText(*chain, rest, end + 70, 70);

      const auto cache = Make();
      ReadText(*cache, text, length, 64);
      const StepRows tree{cache.get(), &drafts, RowRange(0, 9), parents};
      runner.Run({&tree, 1});
      cache->Accept(row);
      EXPECT_EQ(cache->length(), end);
      EXPECT_EQ(cache->cache().pool().budget().used(), kLayout.BytesFor(end));
      EXPECT_EQ(ReadText(*cache, rest, end + 70, 70), expected)
          << "row " << row << " after " << length;
    }
  }
}

// Branches and forks behind a long text read shared pages together (ops/shared_keys.h).
TEST(AttentionStepTest, SharedReadingOfALongTextKeepsTheBits) {
  const TestText text(kGeometry, 2200, 11), drafts(kGeometry, 6, 12);
  const std::vector<int32_t> parents = {-1, 0, 1, -1, 3, 0};
  for (const DType type : {DType::kF32, DType::kBF16, DType::kI8}) {
    const auto cache = NewText(kGeometry, {.kv_type = type, .context = 4096});
    ReadText(*cache, text, 2200, 500);
    StepRunner alone;
    const auto expected = [&](std::vector<int64_t> path) {
      std::vector<float> out = alone.Read(*cache->Fork(), drafts, path, 1);
      out.erase(out.begin(), out.end() - std::ssize(out) / std::ssize(path));
      return out;
    };
    for (const int threads : {1, 3}) {
      const auto tree = cache->Fork(), left = cache->Fork(), right = cache->Fork();
      StepRunner runner(threads);
      const StepRows together[] = {{tree.get(), &drafts, RowRange(0, 6), parents},
                                   {left.get(), &drafts, {4}},
                                   {right.get(), &drafts, {5}}};
      auto found = runner.Run(together);
      EXPECT_EQ(found[1], expected({4}));
      EXPECT_EQ(found[2], expected({5}));
      const std::vector<std::vector<int64_t>> paths = {{0}, {0, 1}, {0, 1, 2}, {3}, {3, 4}, {0, 5}};
      std::vector<float> of_tree;
      for (const auto& path : paths) {
        const auto row = expected(path);
        of_tree.insert(of_tree.end(), row.begin(), row.end());
      }
      EXPECT_EQ(found[0], of_tree) << Name(type) << " on " << threads;
    }
  }
}

TEST(AttentionStepTest, EveryPathOfATreeMayReachTheContextAndNoneBeyond) {
  const TestText text(kGeometry, 100, 9);
  const auto cache = Make("dense", 64);
  ReadText(*cache, text, 61, 61);
  StepRunner runner;
  const StepRows fits{cache.get(), &text, RowRange(0, 6), {-1, 0, 1, -1, 3, 4}};
  runner.Run({&fits, 1});
  const StepRows beyond{cache.get(), &text, RowRange(0, 5), {-1, 0, 1, 2, -1}};
  EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                      [&] {
                        runner.Run({&beyond, 1});
                      }),
              HasSubstr("61 tokens and 4 more exceed the context of 64 tokens"));
  EXPECT_EQ(cache->length(), 61);
}

TEST(AttentionStepTest, ANumberBeyondF16LeavesTheTextsAsTheyWere) {
  const TestText text(kGeometry, 40, 10);
  const auto f16 = NewText(kGeometry, {.kv_type = DType::kF16, .context = 100});
  ReadText(*f16, text, 20, 20);
  StepRunner runner(2);
  const Exec exec = runner.exec();
  for (const int64_t rows : {1, 20}) {  // on one core and on several
    const std::vector<int32_t> tokens(rows);
    const Segment segment{.tokens = tokens, .text = f16.get()};
    std::vector<float> k(rows * 24, 1e6f), v(k.size());
    std::vector<float> q(rows * 48), out(q.size());
    AttentionStep step(exec, {&segment, 1});
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                        [&] {
                          step.Attend(0,
                                      {.q = {q.data(), rows, 48, 48},
                                       .k = {k.data(), rows, 24, 24},
                                       .v = {v.data(), rows, 24, 24}},
                                      {out.data(), rows, 48, 48});
                        }),
                HasSubstr("a key of layer 0"));
  }
  EXPECT_EQ(f16->length(), 20);
  const auto fresh = NewText(kGeometry, {.kv_type = DType::kF16, .context = 100});
  ReadText(*fresh, text, 20, 20);
  EXPECT_EQ(ReadText(*f16, text, 40, 20), ReadText(*fresh, text, 40, 20));
}

// Each KV head looks at its own tiles and at the last tile.
class ListPolicy : public AttentionPolicy {
 public:
  ListPolicy() : AttentionPolicy({.name = "list", .limit_tokens = 4096, .max_kept_tokens = 4096}) {}

  int64_t SeenKeys(int64_t /*layer*/, int64_t /*position*/) const override { return 4096; }
  ops::KvRange Forgotten(int64_t /*length*/) const override { return {0, 0}; }
  void Plan(const RowRun& run) override {
    parts_.assign(2, {});
    spans_.clear();
    const int64_t last = (run.position + run.rows - 1) / 64;
    for (int64_t head = 0; head < 2; ++head) {
      auto& parts = parts_[head];
      for (int64_t tile = 0; tile <= last; ++tile) {
        if (tile % 3 == head) parts.push_back({tile, 10, 50});
        if (tile % 3 != head && tile == last) parts.push_back({tile, 0, 64});
      }
      spans_.emplace_back(parts);
    }
  }
  Looks Select(const RowRun& /*run*/, int64_t /*layer*/, const RunQueries& /*queries*/) override {
    Looks looks;
    looks.Add({.parts = spans_});
    return looks;
  }
  std::unique_ptr<AttentionPolicy> Fork() const override { return std::make_unique<ListPolicy>(); }

  // Whether the token at position p looks at position k with the KV head.
  static bool Sees(int64_t p, int64_t kv_head, int64_t k) {
    const int64_t tile = k / 64, slot = k % 64;
    if (tile % 3 == kv_head) return slot >= 10 && slot < 50;
    return tile == p / 64;
  }

 private:
  std::vector<std::vector<ops::TilePart>> parts_;
  std::vector<std::span<const ops::TilePart>> spans_;
};

TEST(AttentionStepTest, APolicyMayListWhatEveryKvHeadLooksAt) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0});
  const TestText text(geometry, 400, 11);
  for (const int64_t position : {5, 100, 383, 384, 399}) {
    const auto dense = NewText(geometry, {.kv_type = DType::kF32, .context = 4096});
    ReadText(*dense, text, position, 400);
    const auto view = dense->Fork(std::make_unique<ListPolicy>());
    const auto out = ReadText(*view, text, position + 1, 1);
    size_t index = 0;
    int64_t looked_at = 0;
    for (int64_t head = 0; head < 4; ++head) {
      std::vector<SeenKey> keys;
      for (int64_t k = 0; k <= position; ++k) {
        if (ListPolicy::Sees(position, head / 2, k)) keys.push_back({k, k});
      }
      if (head % 2 == 0) looked_at += std::ssize(keys);
      if (keys.empty()) {
        for (int64_t d = 0; d < 12; ++d) EXPECT_EQ(out[index++], 0);
        continue;
      }
      for (const double expected : text.Attend(0, head, position, position, keys)) {
        ASSERT_NEAR(out[index++], expected, 2e-6) << "position " << position << " head " << head;
      }
    }
    EXPECT_EQ(view->Stats().read_bytes,
              looked_at * LayoutOf(geometry, DType::kF32).head_bytes() / 64);
  }
}

}  // namespace
}  // namespace godwit::step_test
