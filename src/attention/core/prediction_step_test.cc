#include "attention/core/prediction_step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/attention_test_support.h"

namespace godwit::prediction_step_test {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 12, kRotary = 8, kTheta = 100;

AttentionGeometry Predicting() {
  AttentionGeometry geometry = TestGeometry(kHeads, kKvHeads, kDim, kRotary, {0});
  geometry.predicting = 1;
  return geometry;
}

// Random rows of the layer that predicts: [tokens, heads or KV heads * dim].
struct Rows {
  Rows(int64_t tokens, int64_t cols, uint64_t seed) : tokens(tokens), cols(cols) {
    for (int64_t i = 0; i < tokens * cols; ++i) {
      values.push_back(static_cast<float>(2 * Uniform(seed, 0, i, 0) - 1));
    }
  }
  MatrixView<const float> View(int64_t begin, int64_t end) const {
    return MatrixView<const float>{values.data(), tokens, cols, cols}.Rows(begin, end);
  }
  int64_t tokens, cols;
  std::vector<float> values;
};

struct Text {
  explicit Text(int64_t tokens)
      : q(tokens, kHeads * kDim, 1), k(tokens, kKvHeads * kDim, 2), v(tokens, kKvHeads * kDim, 3) {}
  Rows q, k, v;
};

class PredictionStepTest : public testing::Test {
 protected:
  std::unique_ptr<TextCache> Make(const std::string& spec, DType type = DType::kF32,
                                  std::shared_ptr<KvPool> pool = nullptr) {
    return MakeTextCache(geometry_, {.spec = spec, .kv_type = type, .context = 8192},
                         std::move(pool));
  }
  Exec exec() {
    return {.pool = pool_, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
  }
  // Caches keys of both layers, up to a length.
  void Read(TextCache& cache, const Text& text, int64_t length) {
    const std::vector<int32_t> tokens(96);
    while (cache.length() < length) {
      const int64_t begin = cache.length(), end = std::min(length, begin + 96);
      const Segment segment{std::span(tokens).first(end - begin), &cache};
      AttentionStep step(exec(), {&segment, 1});
      for (int64_t layer = 0; layer < 2; ++layer) {
        const ops::AttentionShape& shape = cache.geometry().ShapeOf(layer);
        const int64_t width = shape.kv_heads * shape.head_dim;
        step.Attend(layer,
                    {.q = {},
                     .k = text.k.View(begin, end).Cols(0, width),
                     .v = text.v.View(begin, end).Cols(0, width)},
                    {});
      }
      step.End();
    }
  }
  // The results of rows behind the text.
  std::vector<float> Predict(TextCache& cache, const Text& text, int64_t rows) {
    const int64_t length = cache.length();
    std::vector<float> results(rows * kHeads * kDim);
    PredictionStep step(exec(), cache, rows);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = length + i;
      step.Attend({.q = text.q.View(at, at + 1),
                   .k = text.k.View(at, at + 1),
                   .v = text.v.View(at, at + 1)},
                  {results.data() + i * kHeads * kDim, 1, kHeads * kDim, kHeads * kDim});
    }
    return results;
  }

  AttentionGeometry geometry_ = Predicting();
  ThreadPool pool_{2};
  Workspace workspace_;
};

std::vector<double> Rotated(std::span<const float> head, int64_t position) {
  std::vector<double> result(head.begin(), head.end());
  constexpr int64_t kHalf = kRotary / 2;
  for (int64_t i = 0; i < kHalf; ++i) {
    const double angle = position * std::pow(kTheta, -static_cast<double>(i) / kHalf);
    const double a = head[i], b = head[i + kHalf];
    result[i] = a * std::cos(angle) - b * std::sin(angle);
    result[i + kHalf] = b * std::cos(angle) + a * std::sin(angle);
  }
  return result;
}

// The definition: the query at `position` sees keys before first_end from a place that leaves the
// gap out, and those from `begin` on. None before `from`.
std::vector<float> Expected(const Text& text, int64_t position, int64_t first_end, int64_t begin,
                            int64_t from = 0) {
  std::vector<float> result;
  for (int64_t head = 0; head < kHeads; ++head) {
    const auto query = text.q.View(position, position + 1).RowSpan(0).subspan(head * kDim, kDim);
    const int64_t kv = head / (kHeads / kKvHeads) * kDim;
    double sum = 0;
    std::vector<double> mean(kDim);
    for (int64_t key = from; key <= position; ++key) {
      if (key >= first_end && key < begin) continue;
      const int64_t place = key < first_end ? position - begin + first_end : position;
      const auto q = Rotated(query, place);
      const auto k = Rotated(text.k.View(key, key + 1).RowSpan(0).subspan(kv, kDim), key);
      double score = 0;
      for (int64_t i = 0; i < kDim; ++i) score += q[i] * k[i];
      const double weight = std::exp(0.4 * score);
      sum += weight;
      const auto value = text.v.View(key, key + 1).RowSpan(0).subspan(kv, kDim);
      for (int64_t i = 0; i < kDim; ++i) mean[i] += weight * value[i];
    }
    for (const double number : mean) result.push_back(static_cast<float>(number / sum));
  }
  return result;
}

void ExpectNear(const std::vector<float>& found, const std::vector<float>& expected, double error) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], error) << i;
}

TEST_F(PredictionStepTest, SeesAllOfATextThatIsShown) {
  const Text text(303);
  const auto cache = Make("dense");
  Read(*cache, text, 300);
  const int64_t bytes = cache->Stats().bytes;
  const auto found = Predict(*cache, text, 3);
  for (int64_t row = 0; row < 3; ++row) {
    const auto one = std::span(found).subspan(row * kHeads * kDim, kHeads * kDim);
    ExpectNear({one.begin(), one.end()}, Expected(text, 300 + row, 300, 300), 1e-5);
  }
  EXPECT_EQ(cache->length(), 300);
  EXPECT_EQ(cache->Stats().bytes, bytes);
  EXPECT_EQ(Predict(*cache, text, 3), found) << "nothing remains";
}

// The policy has dropped the tiles [64, 128) by then.
TEST_F(PredictionStepTest, LeavesOutWhatTheTextHasDropped) {
  const Text text(303);
  const auto cache = Make("sinks:4+60");
  Read(*cache, text, 300);
  const ops::KvRange dropped = cache->cache().dropped();
  ASSERT_EQ(dropped.begin, 64);
  ASSERT_GT(dropped.end, 64);
  ExpectNear(Predict(*cache, text, 1), Expected(text, 300, 64, dropped.end), 1e-5);
}

TEST_F(PredictionStepTest, SeesAWindowOfATextThatIsShownInParts) {
  const Text text(4500);
  const auto cache = Make("blocks");
  Read(*cache, text, 4100);
  ExpectNear(Predict(*cache, text, 1), Expected(text, 4100, 4100, 4100), 1e-5);
  Read(*cache, text, 4490);
  ExpectNear(Predict(*cache, text, 1), Expected(text, 4490, 64, 4491 - PredictionStep::kWindow),
             1e-5);
}

TEST_F(PredictionStepTest, SeesNothingBeforeItsFirstPosition) {
  const Text text(303);
  for (const int64_t from : {1, 3}) {
    geometry_.predicting_from = from;
    const auto all = Make("dense"), parts = Make("sinks:4+60");
    Read(*all, text, from);
    ExpectNear(Predict(*all, text, 1), Expected(text, from, from, from, from), 1e-5);
    Read(*all, text, 300);
    ExpectNear(Predict(*all, text, 1), Expected(text, 300, 300, 300, from), 1e-5);
    Read(*parts, text, 300);
    const int64_t gap_end = parts->cache().dropped().end;
    ExpectNear(Predict(*parts, text, 1), Expected(text, 300, 64, gap_end, from), 1e-5);
  }
}

// The layer's pages are those of the model's layers, which have other heads.
TEST_F(PredictionStepTest, HasHeadsOfItsOwn) {
  const Text text(131);
  geometry_.predicting_shape = geometry_.shape;
  geometry_.shape = {.heads = 3, .kv_heads = 1, .head_dim = 20, .scale = 0.3f};
  EXPECT_EQ(LayoutOf(geometry_, DType::kF32).places.size(), 2u);
  for (const DType type : {DType::kF32, DType::kBF16, DType::kI8}) {
    const auto cache = Make("dense", type);
    Read(*cache, text, 130);
    ExpectNear(Predict(*cache, text, 1), Expected(text, 130, 130, 130), 0.02);
  }
}

TEST_F(PredictionStepTest, ReadsEveryStorage) {
  const Text text(131);
  for (const DType type : {DType::kBF16, DType::kI8, DType::kI8I4, DType::kI4}) {
    const auto cache = Make("dense", type);
    Read(*cache, text, 130);
    const bool narrow = type == DType::kI8I4 || type == DType::kI4;
    ExpectNear(Predict(*cache, text, 1), Expected(text, 130, 130, 130), narrow ? 0.1 : 0.02);
  }
}

TEST_F(PredictionStepTest, ARefusalChangesNothing) {
  const Text text(200);
  const KvLayout layout = LayoutOf(geometry_, DType::kF32);
  EXPECT_EQ(layout.layers, 2);
  const auto pool =
      std::make_shared<KvPool>(layout, std::make_shared<KvBudget>(layout.BytesFor(128)));
  const auto cache = Make("dense", DType::kF32, pool);
  Read(*cache, text, 126);
  EXPECT_EQ(ErrorOf([&] { Predict(*cache, text, 3); }).kind(), ErrorKind::kMemory);
  EXPECT_EQ(cache->length(), 126);
  ExpectNear(Predict(*cache, text, 1), Expected(text, 126, 126, 126), 1e-5);
  Read(*cache, text, 128);
}

// The last output is that of the last accepted token, whatever was drafted or taken back.
TEST_F(PredictionStepTest, TextsRememberTheLastOutput) {
  const Text text(40);
  const auto cache = Make("dense");
  EXPECT_TRUE(cache->last_output().empty());
  const auto read = [&](std::vector<int32_t> parents, int64_t rows, float first, bool end = true) {
    const std::vector<int32_t> tokens(rows);
    const Segment segment{.tokens = tokens, .text = cache.get(), .parents = parents};
    AttentionStep step(exec(), {&segment, 1});
    for (int64_t layer = 0; layer < 2; ++layer) {
      step.Attend(layer, {.q = {}, .k = text.k.View(0, rows), .v = text.v.View(0, rows)}, {});
    }
    std::vector<float> outputs;
    for (int64_t row = 0; row < rows; ++row) {
      outputs.insert(outputs.end(), {first + static_cast<float>(row), -1});
    }
    step.KeepOutputs({outputs.data(), rows, 2, 2});
    if (end) step.End();
  };
  const auto last = [&] {
    const auto output = cache->last_output();
    EXPECT_EQ(output.size(), 2u);
    return output.empty() ? -1 : output[0];
  };
  read({}, 5, 10);
  EXPECT_EQ(last(), 14);
  read({}, 3, 50, /*end=*/false);
  EXPECT_EQ(last(), 14) << "the step did not happen";
  read({-1, 0, 0, 2}, 4, 20);
  EXPECT_EQ(last(), 14) << "no row is accepted yet";
  cache->Accept(2);
  EXPECT_EQ(cache->length(), 7);
  EXPECT_EQ(last(), 22);
  const auto fork = cache->Fork();
  read({}, 1, 30);
  EXPECT_EQ(last(), 30);
  EXPECT_EQ(fork->last_output()[0], 22);
  cache->ContinueAs(*fork);
  EXPECT_EQ(last(), 22);
  cache->Truncate(7);
  EXPECT_EQ(last(), 22);
  cache->Truncate(6);
  EXPECT_TRUE(cache->last_output().empty());
}

}  // namespace
}  // namespace godwit::prediction_step_test
