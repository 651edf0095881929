#include "ops/shared_keys.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/thread_pool.h"
#include "kernels/dispatch.h"
#include "ops/attention_state.h"
#include "tensor/workspace.h"

namespace godwit::ops::shared_keys_test {
namespace {

constexpr AttentionShape kShape = {.heads = 4, .kv_heads = 2, .head_dim = 8, .scale = 1};

// A text of more than five stretches, whose pages are never read.
struct Text {
  std::vector<PageData> pages;
  std::vector<float> q;
  AttentionSource source;
  AttentionRows rows;

  // The text's own pages begin at the tile `own`.
  Text(int id, int64_t own, int64_t tokens)
      : pages(5 * kStretchTiles + 3), q(static_cast<size_t>(tokens * 32)) {
    static std::vector<std::byte> memory(4 * 128);
    for (size_t tile = 0; tile < pages.size(); ++tile) {
      const bool shared = static_cast<int64_t>(tile) < own;
      pages[tile] = PageData(&memory[static_cast<size_t>(shared ? 0 : id) * 128 + tile]);
    }
    std::iota(q.begin(), q.end(), 1000.0f * static_cast<float>(id));
    source = {.kv = {.dtype = DType::kBF16,
                     .pages = pages.data(),
                     .page_stride = 1,
                     .slots = std::ssize(pages),
                     .head_bytes = 1,
                     .value_offset = 0},
              .q = {q.data(), tokens * 4, 8, 8},
              .visible = {}};
    rows = {.first_row = 0, .rows = tokens, .position = 5 * kStretchTokens + 70, .sources = {}};
  }
};

class SharedKeysTest : public testing::Test {
 protected:
  // The number of texts of each group, and the end of its shared keys.
  std::vector<std::pair<int64_t, int64_t>> Groups(std::vector<Text*> texts,
                                                  const Alibi& alibi = {}) {
    Workspace::Scope scope(workspace_);
    std::vector<AttentionRows> rows;
    for (Text* text : texts) {
      if (text->rows.sources.empty()) text->rows.sources = {&text->source, 1};
      rows.push_back(text->rows);
    }
    SharedKeys shared(exec_, kShape, alibi, rows);
    std::vector<std::pair<int64_t, int64_t>> groups;
    for (const AttentionRows& group : shared.groups()) {
      groups.emplace_back(group.rows, group.sources.front().visible.end);
    }
    return groups;
  }

  ThreadPool pool_{1};
  Workspace workspace_;
  Exec exec_{.pool = pool_, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
};

using Found = std::vector<std::pair<int64_t, int64_t>>;

TEST_F(SharedKeysTest, TextsThatShareAreOneGroup) {
  Text a(1, 60, 2), b(2, 60, 1), c(3, 48, 3), d(2, 0, 1), e(3, 0, 1);
  EXPECT_EQ(Groups({&a}), Found());
  EXPECT_EQ(Groups({&a, &b}), (Found{{3, 3 * kStretchTokens}}));
  EXPECT_EQ(Groups({&a, &b, &c}), (Found{{6, 3 * kStretchTokens}}));
  EXPECT_EQ(Groups({&a, &d, &b, &e, &c}), (Found{{6, 3 * kStretchTokens}}));
  EXPECT_EQ(Groups({&c, &c}), (Found{{6, 5 * kStretchTokens}}))
      << "what rows do not see is not shared";
}

// Two books behind one prompt, and two questions about each.
TEST_F(SharedKeysTest, TextsWithMostSharedKeysAreGrouped) {
  Text a(1, 80, 1), b(2, 35, 1);
  Text other_a = a, other_b = b;
  for (Text* text : {&other_a, &other_b}) text->source.kv.pages = text->pages.data();
  EXPECT_EQ(Groups({&a, &b, &other_a, &other_b}),
            (Found{{2, 5 * kStretchTokens}, {2, 5 * kStretchTokens}}));
  Text c(3, 50, 1);
  EXPECT_EQ(Groups({&a, &c, &other_b, &other_a}), (Found{{3, 3 * kStretchTokens}}));
}

TEST_F(SharedKeysTest, FewSharedKeysFormNoGroup) {
  Text a(1, 40, 1), b(2, 40, 1), c(3, 31, 1);
  EXPECT_EQ(Groups({&a, &b}), (Found{{2, 2 * kStretchTokens}}));
  EXPECT_EQ(Groups({&a, &c}), Found());
  a.source.visible.begin = b.source.visible.begin = 1;
  EXPECT_EQ(Groups({&a, &b}), Found());
}

TEST_F(SharedKeysTest, NoMoreRowsThanShareStretches) {
  Text a(1, 60, 64), b(2, 60, 60), c(3, 60, 8);
  EXPECT_EQ(Groups({&a, &b, &c}), (Found{{124, 3 * kStretchTokens}}));
  EXPECT_EQ(Groups({&c, &a, &b}), (Found{{72, 3 * kStretchTokens}}));
}

TEST_F(SharedKeysTest, RowsThatMaySeeOtherKeysReadAlone) {
  const auto groups = [&](const auto& change) {
    Text a(1, 60, 1), b(2, 60, 1);
    change(b);
    return Groups({&a, &b}).size();
  };
  EXPECT_EQ(groups([](Text&) {}), 1u);
  EXPECT_EQ(groups([](Text& b) { b.source.visible.window = 5000; }), 0u);
  EXPECT_EQ(groups([](Text& b) { b.source.visible.block = 5000; }), 0u);
  EXPECT_EQ(groups([](Text& b) { b.source.visible.begin = 64; }), 0u);
  EXPECT_EQ(groups([](Text& b) { b.source.visible.end = 1500; }), 0u);
  EXPECT_EQ(groups([](Text& b) { b.source.visible.from = b.rows.position + 1; }), 0u);
  EXPECT_EQ(groups([](Text& b) { b.source.visible.until = b.rows.position; }), 0u);
  EXPECT_EQ(groups([](Text& b) { b.source.int8_products = true; }), 0u);
  EXPECT_EQ(groups([](Text& b) { b.source.kv.dropped_end = 2; }), 0u);
  EXPECT_EQ(groups([](Text& b) { b.rows.before = b.q.data(); }), 0u);
  EXPECT_EQ(groups([](Text& b) { b.source.biases = b.source.q; }), 0u);
  const std::vector<std::span<const TilePart>> parts(2);
  EXPECT_EQ(groups([&](Text& b) { b.source.parts = parts; }), 0u);
  std::vector<AttentionSource> two(2);
  EXPECT_EQ(groups([&](Text& b) { b.rows.sources = two = {b.source, b.source}; }), 0u);
  Text a(1, 60, 1), b(2, 60, 1);
  const Alibi alibi{.slopes = {1, 1, 1, 1}};
  EXPECT_EQ(Groups({&a, &b}, alibi), Found());
}

// Tiles that other ranks hold have no page in either text.
TEST_F(SharedKeysTest, TilesWithoutPagesAreNotShared) {
  Text a(1, 16, 1), b(2, 16, 1);
  std::fill_n(a.pages.begin() + 20, 30, PageData());
  std::fill_n(b.pages.begin() + 20, 30, PageData());
  EXPECT_EQ(Groups({&a, &b}), Found());
}

TEST_F(SharedKeysTest, EveryRowGoesOnFromItsOwnState) {
  Text a(1, 60, 2), b(2, 60, 3);
  a.rows.sources = {&a.source, 1};
  b.rows.sources = {&b.source, 1};
  const AttentionRows texts[] = {a.rows, b.rows};
  SharedKeys shared(exec_, kShape, {}, texts);
  ASSERT_EQ(shared.groups().size(), 1u);
  const AttentionRows& group = shared.groups().front();
  const int64_t stride = StateStride(kShape.head_dim);
  const MatrixView<const float> q = group.sources.front().q;
  ASSERT_EQ(q.rows, 20);
  for (int64_t row = 0; row < q.rows; ++row) {  // a state that names its query
    std::fill_n(group.states + row * stride, stride, q.Row(row)[0]);
  }
  const auto rest = shared.Rest();
  ASSERT_EQ(rest.size(), 2u);
  for (const AttentionRows& text : rest) {
    const AttentionSource& source = text.sources.front();
    EXPECT_EQ(source.visible.begin, 3 * kStretchTokens);
    for (int64_t row = 0; row < text.rows * kShape.heads; ++row) {
      for (int64_t i = 0; i < stride; ++i) {
        ASSERT_EQ(text.before[row * stride + i], source.q.Row(row)[0]) << row;
      }
    }
  }
}

}  // namespace
}  // namespace godwit::ops::shared_keys_test
