// Attention of which an emulated GPU computes a part, beside its definition, and what the GPU keeps
// for it.
#include "ops/gpu/gpu_near.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/test_support.h"
#include "cuda/faulty_device_test_support.h"
#include "ops/attention_state.h"
#include "ops/attention_test_support.h"
#include "ops/gpu/gpu_turn.h"
#include "ops/test_support.h"

namespace godwit::ops::gpu_near_test {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* name;
  AttentionShape shape;
  DType dtype;
  NearTiles near;
  int64_t position = 0;
  int64_t tokens = 1;
  Visible visible = {};
  std::vector<int64_t> far_tiles = {};  // that are seen with the near ones; empty: all
  bool sinks = false;
};

AttentionShape Capped(AttentionShape shape) {
  shape.score_cap = 3;
  return shape;
}

const Case kCases[] = {
    {"one_key", MakeShape(1, 1, 8), DType::kF32, {0, 1}},
    {"all_near", MakeShape(4, 2, 16), DType::kBF16, {2, 3}, 0, 70},
    {"dense", MakeShape(2, 1, 16), DType::kF32, {0, 2}, 250, 70},
    {"dense_with_sinks", MakeShape(4, 2, 9), DType::kF16, {1, 2}, 100, 190, {}, {}, true},
    {"chosen", MakeShape(4, 4, 12), DType::kF32, {2, 2}, 1000, 20, {}, {5, 9, 10}},
    {"chosen_bf16", MakeShape(6, 2, 32), DType::kBF16, {1, 3}, 700, 9, {}, {3, 4}, true},
    {"several_stretches", MakeShape(2, 1, 16), DType::kBF16, {2, 18}, 2500, 3, {}, {7, 11}},
    {"window", MakeShape(4, 2, 12), DType::kF32, {2, 2}, 300, 30, {.window = 170}},
    {"short_window", MakeShape(2, 2, 8), DType::kF32, {0, 3}, 300, 70, {.window = 9}},
    {"behind_keys", MakeShape(2, 2, 16), DType::kF32, {2, 1}, 200, 4, {.begin = 50}},
    {"capped", Capped(MakeShape(6, 2, 48)), DType::kBF16, {0, 1}, 100, 40},
};

std::unique_ptr<Gpu> NewGpu(cuda::ThreadOrder order = cuda::ThreadOrder::kAscending) {
  return std::make_unique<Gpu>(
      std::make_unique<cuda::EmulatedDevice>(cuda::EmulatedOptions{.order = order}), 0);
}

// A text in its cache, with stamps as KvCache gives them.
class Text {
 public:
  Text(const AttentionShape& shape, DType dtype, int64_t tokens, uint32_t seed, uint64_t stamp)
      : cache_(shape, dtype, tokens, seed), length_(tokens) {
    cache_.WriteRandom(0, tokens);
    stamps_.resize(static_cast<size_t>((tokens + kTileTokens - 1) / kTileTokens));
    std::iota(stamps_.begin(), stamps_.end(), stamp);
  }

  Cache& cache() { return cache_; }
  const Cache& cache() const { return cache_; }
  std::vector<uint64_t>& stamps() { return stamps_; }
  void set_length(int64_t length) { length_ = length; }
  KvView View() const {
    KvView view = cache_.View();
    view.stamps = stamps_.data();
    view.length = length_;
    return view;
  }

 private:
  Cache cache_;
  std::vector<uint64_t> stamps_;
  int64_t length_;
};

// Rows [begin, end) of the queries at `position` and what follows it, of one text.
struct Rows {
  const Text* text;
  const Queries* queries;
  int64_t position;
  int64_t begin;
  int64_t end;
};

// Attends to all rows in one call, with copies in `tiles`.
std::vector<float> Attend(const Case& c, Gpu& gpu, GpuTiles& tiles, const std::vector<Rows>& rows,
                          std::span<const float> sinks = {},
                          std::span<const std::span<const TilePart>> parts = {}) {
  ThreadPool pool(2);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  std::vector<GappedMatrix> queries;
  std::vector<AttentionSource> sources;
  std::vector<NearRows> texts;
  int64_t first_row = 0;
  queries.reserve(rows.size());
  sources.reserve(rows.size());
  for (const Rows& r : rows) {
    queries.push_back(r.queries->HeadMajor(r.begin, r.end));
    sources.push_back(
        {.kv = r.text->View(), .q = queries.back().view(), .visible = c.visible, .parts = parts});
    texts.push_back({.rows = {.first_row = first_row,
                              .rows = r.end - r.begin,
                              .position = r.position + r.begin,
                              .sources = {&sources.back(), 1}},
                     .tiles = c.near});
    first_row += r.end - r.begin;
  }
  GappedMatrix out(first_row, c.shape.heads * c.shape.value_dim());
  const int64_t stride = StateStride(c.shape.value_dim());
  std::vector<AttentionRows> far;
  for (const NearRows& text : texts) {
    far.push_back(FarOf(workspace, text.tiles, text.rows));
    far.back().states = workspace.Matrix<float>(text.rows.rows * c.shape.heads, stride).data;
  }
  const GpuAttentionMemory memory = GpuNearMemoryOf(c.shape, c.near.count(), first_row);
  GpuTurn turn(exec, gpu, memory.scratch_bytes, memory.host_bytes);
  BeginNearOnGpu(turn, tiles, c.shape, /*layer=*/1, texts);
  EXPECT_EQ(turn.scratch().used(), 0);
  Attention(exec, c.shape, {}, far, sinks, out.view());
  turn.Wait();
  FinishNear(exec, c.shape, far, texts, sinks, out.view());
  EXPECT_TRUE(out.GapsIntact());
  return out.Values();
}

class GpuNearTest : public testing::TestWithParam<Case> {
 protected:
  GpuNearTest()
      : text_(shape(), c().dtype, c().position + c().tokens, 5, 1),
        queries_(shape(), c().tokens, 11) {
    RandomFloats random(13);
    for (int64_t i = 0; c().sinks && i < shape().heads; ++i) sinks_.push_back(random(-3, 3));
    if (c().far_tiles.empty()) return;
    // Chosen tiles may lack tokens; near ones are whole.
    const int64_t last = (c().position + c().tokens - 1) / kTileTokens;
    for (int64_t tile = 0; tile < c().near.sinks; ++tile) parts_.push_back({tile, 0, 64});
    for (const int64_t tile : c().far_tiles) parts_.push_back({tile, 3, 60, 0x10});
    const int64_t first = c().position / kTileTokens + 1 - c().near.window;
    for (int64_t tile = first; tile <= last; ++tile) parts_.push_back({tile, 0, 64});
    lists_.assign(static_cast<size_t>(shape().kv_heads), parts_);
  }

  const Case& c() const { return GetParam(); }
  const AttentionShape& shape() const { return c().shape; }

  int64_t TileBytes() const { return GpuTileBytes(shape(), 2, 2 * c().near.count()); }

  // Pieces of up to `most` rows, each within a tile.
  std::vector<Rows> Pieces(int64_t most) const {
    std::vector<Rows> pieces;
    for (int64_t begin = 0; begin < c().tokens;) {
      const int64_t in_tile = kTileTokens - (c().position + begin) % kTileTokens;
      const int64_t end = std::min({c().tokens, begin + most, begin + in_tile});
      pieces.push_back({&text_, &queries_, c().position, begin, end});
      begin = end;
    }
    return pieces;
  }

  std::vector<float> Run(Gpu& gpu, GpuTiles& tiles, const std::vector<Rows>& rows) const {
    return Attend(c(), gpu, tiles, rows, sinks_, lists_);
  }

  // The softmax of a row over the keys that it sees, in double.
  std::vector<double> Defined(int64_t token, int64_t head) const {
    const int64_t kv_head = head / (shape().heads / shape().kv_heads), dim = shape().head_dim;
    const int64_t p = c().position + token;
    TextRows rows{.cache = &text_.cache(),
                  .queries = &queries_,
                  .position = c().position,
                  .visible = c().visible};
    if (!parts_.empty()) rows.parts.assign(shape().kv_heads, parts_);
    const std::vector<double> keys = text_.cache().Keys(kv_head, p + 1);
    const std::vector<double> values = text_.cache().Values(kv_head, p + 1);
    double total = sinks_.empty() ? 0 : std::exp(sinks_[head]);
    std::vector<double> out(dim, 0.0);
    for (int64_t k = 0; k <= p; ++k) {
      if (!rows.Sees(p, kv_head, k)) continue;
      double score = 0;
      for (int64_t d = 0; d < dim; ++d) {
        score += text_.cache().Query(queries_.At(token, head, d)) * keys[k * dim + d];
      }
      score *= shape().scale;
      if (shape().score_cap != 0) score = shape().score_cap * std::tanh(score / shape().score_cap);
      const double weight = std::exp(score);
      total += weight;
      for (int64_t d = 0; d < dim; ++d) out[d] += weight * values[k * dim + d];
    }
    for (double& x : out) x /= total;
    return out;
  }

  Text text_;
  Queries queries_;
  std::vector<float> sinks_;
  std::vector<TilePart> parts_;
  std::vector<std::span<const TilePart>> lists_;
};

// Values are up to 1. Weights beside BF16 are rounded to bf16.
TEST_P(GpuNearTest, IsItsDefinition) {
  for (const auto order : {cuda::ThreadOrder::kAscending, cuda::ThreadOrder::kDescending}) {
    const auto gpu = NewGpu(order);
    GpuTiles tiles(*gpu, 2, 2 * TileBytes());
    const std::vector<float> out = Run(*gpu, tiles, Pieces(64));
    const double tolerance = c().dtype == DType::kBF16 ? 0x1p-8 : 2e-6;
    const int64_t dim = shape().value_dim();
    for (int64_t token = 0; token < c().tokens; ++token) {
      for (int64_t head = 0; head < shape().heads; ++head) {
        const std::vector<double> expected = Defined(token, head);
        for (int64_t d = 0; d < dim; ++d) {
          ASSERT_NEAR(out[(token * shape().heads + head) * dim + d], expected[d], tolerance)
              << token << " " << head << " " << d;
        }
      }
    }
  }
}

TEST_P(GpuNearTest, HasTheSameBitsInEveryChunkBatchAndRun) {
  const auto gpu = NewGpu();
  GpuTiles tiles(*gpu, 2, 2 * TileBytes());
  const std::vector<float> expected = Run(*gpu, tiles, Pieces(64));
  for (const int64_t most : {1, 7}) {
    EXPECT_EQ(Run(*gpu, tiles, Pieces(most)), expected) << "pieces of " << most;
    std::vector<float> all;
    for (const Rows& piece : Pieces(most)) {
      const std::vector<float> part = Run(*gpu, tiles, {piece});
      all.insert(all.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, expected) << "chunks of " << most;
  }
  // Memory for the tiles of one call: each one takes the places of others.
  const auto other = NewGpu(cuda::ThreadOrder::kDescending);
  GpuTiles few(*other, 2,
               GpuTileBytes(shape(), 2, c().near.count()) * (c().dtype == DType::kF32 ? 2 : 1));
  EXPECT_EQ(Run(*other, few, Pieces(64)), expected);
}

INSTANTIATE_TEST_SUITE_P(All, GpuNearTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Two texts of 200 tokens that are read by one row each.
class GpuTilesTest : public testing::Test {
 protected:
  static constexpr int64_t kTokens = 200;
  static constexpr NearTiles kNear{.sinks = 1, .window = 2};

  std::vector<float> Attend(GpuTiles& tiles, const Text& text, int64_t position = kTokens - 1) {
    return gpu_near_test::Attend(case_, *gpu_, tiles, {{&text, &queries_, position, 0, 1}});
  }
  // Without copies from before.
  std::vector<float> AttendAnew(const Text& text) {
    GpuTiles tiles(*gpu_, 2, GpuTileBytes(case_.shape, 2, 3));
    return Attend(tiles, text);
  }

  const Case case_{"", MakeShape(4, 2, 16), DType::kBF16, kNear};
  const std::unique_ptr<Gpu> gpu_ = NewGpu();
  const Queries queries_{case_.shape, 1, 3};
  GpuTiles tiles_{*gpu_, 2, GpuTileBytes(case_.shape, 2, 6)};
  Text text_{case_.shape, DType::kBF16, kTokens, 5, 1};
};

TEST_F(GpuTilesTest, CopiesWholeTilesOnce) {
  text_.set_length(kTokens - 1);  // the last row is one of the step
  Attend(tiles_, text_);
  EXPECT_EQ(tiles_.copied_tiles(), 3);
  Attend(tiles_, text_);
  EXPECT_EQ(tiles_.copied_tiles(), 4) << "the tile of the row";
  text_.set_length(kTokens);
  EXPECT_EQ(Attend(tiles_, text_), AttendAnew(text_));
  EXPECT_EQ(tiles_.copied_tiles(), 5);
  Attend(tiles_, text_);
  EXPECT_EQ(tiles_.copied_tiles(), 5) << "all rows belong to the text";
  Attend(tiles_, text_, 127);
  EXPECT_EQ(tiles_.copied_tiles(), 6) << "the second tile was no near one";
}

TEST_F(GpuTilesTest, RowsOfAStepThatFailedAreNotKept) {
  text_.set_length(kTokens - 5);
  Attend(tiles_, text_);
  text_.cache().WriteRandom(kTokens - 5, kTokens);
  const std::vector<float> expected = AttendAnew(text_);
  text_.set_length(kTokens);  // read by others
  EXPECT_EQ(Attend(tiles_, text_), expected);
}

TEST_F(GpuTilesTest, OtherRowsHaveOtherStamps) {
  const std::vector<float> before = Attend(tiles_, text_);
  text_.cache().WriteRandom(130, kTokens);
  text_.stamps()[2] = 77;
  text_.stamps()[3] = 78;
  const std::vector<float> expected = AttendAnew(text_);
  EXPECT_EQ(Attend(tiles_, text_), expected);
  EXPECT_NE(before, expected);
}

TEST_F(GpuTilesTest, TextsShareItsMemory) {
  GpuTiles few(*gpu_, 2, GpuTileBytes(case_.shape, 2, 4));
  const Text other(case_.shape, DType::kBF16, kTokens, 6, 100);
  const std::vector<float> first = AttendAnew(text_), second = AttendAnew(other);
  EXPECT_NE(first, second);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Attend(few, text_), first);
    EXPECT_EQ(Attend(few, other), second);
  }
  EXPECT_GT(few.copied_tiles(), 6);
  Attend(tiles_, text_);
  Attend(tiles_, other);
  Attend(tiles_, text_);
  EXPECT_EQ(tiles_.copied_tiles(), 6) << "both have a place";
}

TEST_F(GpuTilesTest, RefusesMoreNearTilesThanFit) {
  GpuTiles few(*gpu_, 2, GpuTileBytes(case_.shape, 2, 2));
  EXPECT_EQ(ErrorOf(ErrorKind::kMemory, [&] { Attend(few, text_); }),
            "the GPU has memory for the keys and values of 128 tokens, stored as bf16, and 192 are "
            "near");
}

TEST(NearTiles, AreCutByPositionAlone) {
  const NearTiles near{.sinks = 2, .window = 3};
  EXPECT_EQ(near.WindowAt(0), 0);
  EXPECT_EQ(near.WindowAt(191), 0);
  EXPECT_EQ(near.WindowAt(192), 1);
  EXPECT_EQ(near.WindowAt(1000), 13);
}

}  // namespace
}  // namespace godwit::ops::gpu_near_test
