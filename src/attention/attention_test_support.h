// Shared parts of the tests of policies and steps: a random text, runners, and attention in double
// from the paper's point of view. There every key is rotated anew at the position at which the
// query is said to see it. Only *_test.cc files include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attention/core/step.h"
#include "attention/make_policy.h"
#include "base/rng.h"
#include "base/test_support.h"
#include "kernels/dispatch.h"

namespace godwit {

inline AttentionGeometry TestGeometry(int64_t heads, int64_t kv_heads, int64_t head_dim,
                                      int64_t rotary_dim, std::vector<int64_t> windows) {
  AttentionGeometry geometry;
  geometry.layers = static_cast<int64_t>(windows.size());
  geometry.shape = {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .scale = 0.4f};
  // The base lets even the slowest pair turn within a short text.
  geometry.rotaries = {{.rotary_dim = rotary_dim, .theta = 100}};
  geometry.windows = std::move(windows);
  return geometry;
}

// The geometry with another rotation, by the base theta or none for 0. Layers take turns.
inline AttentionGeometry WithOtherRotary(AttentionGeometry geometry, double theta) {
  geometry.rotaries.push_back({.rotary_dim = theta == 0 ? 0 : geometry.rotaries[0].rotary_dim,
                               .theta = theta == 0 ? 1 : theta});
  const int64_t ways = std::ssize(geometry.rotaries);
  geometry.layer_rotary.clear();
  for (int64_t i = 0; i < geometry.layers; ++i) geometry.layer_rotary.push_back(i % ways);
  return geometry;
}

// The geometry without rotation and with ALiBi. A slope is large enough that even a far token's
// place shows, and is no bf16 number.
inline AttentionGeometry WithAlibi(AttentionGeometry geometry, bool in_bf16) {
  geometry.rotaries[0].rotary_dim = 0;
  geometry.alibi.scale = 0.7f;
  geometry.alibi.in_bf16 = in_bf16;
  for (int64_t head = 0; head < geometry.shape.heads; ++head) {
    geometry.alibi.slopes.push_back(0.03f * static_cast<float>(head + 1));
  }
  return geometry;
}

// The geometry with chunks in the place of windows.
inline AttentionGeometry InChunks(AttentionGeometry geometry) {
  geometry.chunked = true;
  return geometry;
}

// The geometry with temperatures of queries that rise by a lot within a short text.
inline AttentionGeometry WithTemperatures(AttentionGeometry geometry) {
  geometry.rotaries.front().temperature = {.growth = 0.5, .tokens = 20};
  if (geometry.rotaries.size() == 1) return geometry;
  geometry.rotaries.back().temperature = {.growth = 0.7, .tokens = 7, .first = 1};
  return geometry;
}

// Whether the layer of the model shows a query a key of a text that is all kept.
inline bool ModelShows(const AttentionGeometry& geometry, int64_t layer, int64_t query,
                       int64_t key) {
  const int64_t window = geometry.windows[layer];
  if (key > query || window == 0) return key <= query;
  return geometry.chunked ? key / window == query / window : query - key < window;
}

// The geometry of a model that tells the mean of its keys.
inline AttentionGeometry WithKeyMeans(AttentionGeometry geometry) {
  geometry.key_means = true;
  return geometry;
}

// The geometry with values that are the keys' numbers behind those that rotate.
inline AttentionGeometry WithValuesInKeys(AttentionGeometry geometry) {
  geometry.shape.values_from = geometry.rotaries[0].rotary_dim;
  return geometry;
}

// The geometry with an index by which a query sees the best keys. The last of several layers sees
// what the one before it chose.
inline AttentionGeometry WithKeyIndex(AttentionGeometry geometry, int64_t best) {
  geometry.key_index = {
      .heads = 3, .head_dim = 9, .best = best, .scale = 0.3f, .weight_scale = 0.6f};
  geometry.index_layers = std::max<int64_t>(1, geometry.layers - 1);
  for (int64_t i = 0; i < geometry.layers; ++i) {
    geometry.has_index.push_back(i < geometry.index_layers);
  }
  return geometry;
}

// A key as a query sees it.
struct SeenKey {
  int64_t token;     // position in the text
  int64_t position;  // in the cache: the key is rotated there, and ALiBi counts from there
};

// The geometry with other heads in every other layer, the first among them.
inline AttentionGeometry WithOtherHeads(AttentionGeometry geometry, int64_t kv_heads,
                                        int64_t head_dim) {
  ops::AttentionShape other = geometry.shape;
  other.kv_heads = kv_heads;
  other.head_dim = head_dim;
  for (int64_t i = 0; i < geometry.layers; ++i) {
    geometry.layer_shapes.push_back(i % 2 == 0 ? other : geometry.shape);
  }
  geometry.shape = other;
  return geometry;
}

// The geometry with so many readers of each layer's keys.
inline AttentionGeometry WithReaders(AttentionGeometry geometry, std::vector<int64_t> readers) {
  geometry.readers = std::move(readers);
  return geometry;
}

// How often a layer attends, and the numbers of a token's results in all layers.
inline int64_t TimesRead(const AttentionGeometry& geometry, int64_t layer) {
  return 1 + (geometry.readers.empty() ? 0 : geometry.readers[layer]);
}
inline int64_t ResultSize(const AttentionGeometry& geometry) {
  int64_t size = 0;
  for (int64_t layer = 0; layer < geometry.layers; ++layer) {
    const ops::AttentionShape& shape = geometry.ShapeOf(layer);
    size += TimesRead(geometry, layer) * shape.heads * shape.value_dim();
  }
  return size;
}

// The geometry in which each reader of a layer's keys is a layer behind it, with such keys of its
// own.
inline AttentionGeometry WithoutReaders(const AttentionGeometry& geometry) {
  AttentionGeometry unfolded = geometry;
  unfolded.layers = 0;
  unfolded.readers.clear();
  unfolded.windows.clear();
  unfolded.layer_rotary.clear();
  unfolded.layer_shapes.clear();
  for (int64_t layer = 0; layer < geometry.layers; ++layer) {
    for (int64_t time = 0; time < TimesRead(geometry, layer); ++time) {
      ++unfolded.layers;
      unfolded.windows.push_back(geometry.windows[layer]);
      unfolded.layer_rotary.push_back(static_cast<int8_t>(geometry.RotaryOf(layer)));
      if (!geometry.layer_shapes.empty()) unfolded.layer_shapes.push_back(geometry.ShapeOf(layer));
    }
  }
  return unfolded;
}

// Random rows of a text. Odd layers have sink logits, so that every test of a policy sees both
// kinds.
class TestText {
 public:
  TestText(const AttentionGeometry& geometry, int64_t tokens, uint64_t seed)
      : geometry_(geometry), tokens_(tokens) {
    for (const RotarySpec& rotary : geometry.rotaries) {
      std::vector<double>& periods = periods_.emplace_back();
      const auto half = static_cast<double>(rotary.rotary_dim / 2);
      for (double i = 0; i < half; ++i) periods.push_back(std::pow(rotary.theta, i / half));
    }
    for (int64_t layer = 0; layer < geometry.layers; ++layer) {
      std::vector<float>& values = layers_.emplace_back();
      const int64_t cols = Cols(layer);
      for (int64_t i = 0; i < tokens * cols; ++i) {
        const double uniform = Uniform(seed, static_cast<uint64_t>(layer), i, 0);
        values.push_back(static_cast<float>(2 * uniform - 1));
      }
      std::vector<float>& index = index_.emplace_back();
      for (int64_t i = 0; layer < geometry.index_layers && i < tokens * IndexCols(); ++i) {
        const double uniform = Uniform(seed + 1000, static_cast<uint64_t>(layer), i, 0);
        index.push_back(static_cast<float>(2 * uniform - 1));
      }
      std::vector<float>& means = key_means_.emplace_back();
      for (int64_t i = 0; geometry.key_means && i < ValueColumn(layer) - KeyColumn(layer); ++i) {
        means.push_back(static_cast<float>(3 * std::cos(layer + 2 * i)));
      }
      for (int64_t row = 0; row < tokens; ++row) {
        for (size_t i = 0; i < means.size(); ++i) {
          values[static_cast<size_t>(row * cols + KeyColumn(layer)) + i] += means[i];
        }
      }
      std::vector<float>& sinks = sink_logits_.emplace_back();
      for (int64_t head = 0; layer % 2 == 1 && head < shape(layer).heads; ++head) {
        sinks.push_back(static_cast<float>(head) / 2 - 1);
      }
    }
  }

  AttentionInput Input(int64_t layer, int64_t begin, int64_t end) const {
    const int64_t cols = Cols(layer), keys = KeyColumn(layer), values = ValueColumn(layer);
    const MatrixView<const float> all{layers_[layer].data(), tokens_, cols, cols};
    const auto rows = all.Rows(begin, end);
    AttentionInput input{
        .q = rows.Cols(0, keys),
        .k = rows.Cols(keys, values),
        .v = shape(layer).values_from ? MatrixView<const float>{} : rows.Cols(values, cols),
        .sink_logits = sink_logits_[layer],
        .key_means = key_means_[layer]};
    if (layer >= geometry_.index_layers) return input;
    const int64_t of_queries = index().heads * index().head_dim;
    const int64_t of_keys = of_queries + index().head_dim;
    const MatrixView<const float> of_index{index_[layer].data(), tokens_, IndexCols(), IndexCols()};
    const auto some = of_index.Rows(begin, end);
    input.index_q = some.Cols(0, of_queries);
    input.index_k = some.Cols(of_queries, of_keys);
    input.index_weights = some.Cols(of_keys, IndexCols());
    return input;
  }

  // The keys that the model's index shows a token of the layer, in order.
  std::vector<SeenKey> Chosen(int64_t layer, int64_t token) const {
    const int64_t from = std::min(layer, geometry_.index_layers - 1);
    const int64_t heads = index().heads, dim = index().head_dim;
    std::vector<std::pair<double, int64_t>> scored;  // minus the score, and the position
    std::vector<double> q(dim), k(dim);
    for (int64_t key = 0; key <= token; ++key) {
      RotateRow(layer, IndexAt(from, key) + heads * dim, key, k);
      double sum = 0;
      for (int64_t head = 0; head < heads; ++head) {
        RotateRow(layer, IndexAt(from, token) + head * dim, token, q);
        const double product = std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
        sum += double{index().weight_scale} * IndexAt(from, token)[(heads + 1) * dim + head] *
               std::max(0.0, double{index().scale} * product);
      }
      scored.emplace_back(-sum, key);
    }
    std::ranges::sort(scored);
    scored.resize(std::min(scored.size(), static_cast<size_t>(index().best)));
    std::vector<SeenKey> keys;
    for (const auto& [score, key] : scored) keys.push_back({key, key});
    std::ranges::sort(keys, {}, &SeenKey::token);
    return keys;
  }

  // The queries of a layer that reads the keys of `layer`: those of the layer, of other tokens.
  MatrixView<const float> ReaderQueries(int64_t layer, int64_t reader, int64_t token) const {
    const int64_t other = (token * 5 + reader + 1) % tokens_;
    return Input(layer, other, other + 1).q;
  }

  // The same text of the model WithoutReaders: results are those of the layers and their readers.
  TestText WithoutReaders() const {
    TestText text = *this;
    text.geometry_ = godwit::WithoutReaders(geometry_);
    for (auto* parts : {&text.layers_, &text.sink_logits_, &text.key_means_, &text.index_}) {
      parts->clear();
    }
    for (int64_t layer = 0; layer < geometry_.layers; ++layer) {
      for (int64_t time = 0; time < TimesRead(geometry_, layer); ++time) {
        std::vector<float>& rows = text.layers_.emplace_back(layers_[layer]);
        for (int64_t token = 0; time > 0 && token < tokens_; ++token) {
          std::ranges::copy(ReaderQueries(layer, time, token).RowSpan(0),
                            rows.begin() + token * Cols(layer));
        }
        text.sink_logits_.push_back(sink_logits_[layer]);
        text.key_means_.push_back(key_means_[layer]);
        text.index_.push_back(index_[layer]);
      }
    }
    return text;
  }

  // The scores of the keys for the head's query of `token`, standing at `position`.
  std::vector<double> Scores(int64_t layer, int64_t head, int64_t token, int64_t position,
                             const std::vector<SeenKey>& keys) const {
    const int64_t kv_head = head * shape(layer).kv_heads / shape(layer).heads;
    std::vector<double> q(shape(layer).head_dim), k = q;
    Rotate(layer, token, head * shape(layer).head_dim, position, q);
    std::vector<double> scores;
    scores.reserve(keys.size());
    for (const SeenKey& key : keys) {
      Rotate(layer, key.token, KeyColumn(layer) + kv_head * shape(layer).head_dim, key.position, k);
      double score = 0;
      for (size_t d = 0; d < k.size(); ++d) score += q[d] * k[d];
      const double bias = Bias(head, key.position) - Bias(head, position);
      scores.push_back(score * double{shape(layer).scale} * Temperature(layer, position) + bias);
    }
    return scores;
  }

  // The attention result over the keys. Each of `groups` counts by the mean of its keys and that of
  // its values, as often as it has keys.
  std::vector<double> Attend(int64_t layer, int64_t head, int64_t token, int64_t position,
                             const std::vector<SeenKey>& keys,
                             const std::vector<std::vector<SeenKey>>& groups = {}) const {
    const ops::AttentionShape& shape = this->shape(layer);
    const int64_t kv_head = head * shape.kv_heads / shape.heads;
    const int64_t first =
        (shape.values_from ? KeyColumn(layer) + *shape.values_from : ValueColumn(layer)) +
        kv_head * shape.head_dim;
    const auto scores = Scores(layer, head, token, position, keys);
    std::vector<double> out(shape.value_dim());
    const auto add = [&](double weight, const SeenKey& key) {
      const float* value = At(layer, key.token, first);
      for (double& x : out) x += weight * *value++;
    };
    const std::vector<float>& sinks = sink_logits_[layer];
    double sum = sinks.empty() ? 0 : std::exp(double{sinks[head]});
    for (size_t i = 0; i < keys.size(); ++i) {
      const double weight = std::exp(scores[i]);
      sum += weight;
      add(weight, keys[i]);
    }
    for (const std::vector<SeenKey>& group : groups) {
      const auto of_group = Scores(layer, head, token, position, group);
      const double mean = std::accumulate(of_group.begin(), of_group.end(), 0.0) /
                          static_cast<double>(group.size());
      const double weight = std::exp(mean);
      sum += static_cast<double>(group.size()) * weight;
      for (const SeenKey& key : group) add(weight, key);
    }
    for (double& x : out) x /= sum;
    return out;
  }

 private:
  const ops::AttentionShape& shape(int64_t layer) const { return geometry_.ShapeOf(layer); }
  int64_t KeyColumn(int64_t layer) const { return shape(layer).heads * shape(layer).head_dim; }
  int64_t ValueColumn(int64_t layer) const {
    return KeyColumn(layer) + shape(layer).kv_heads * shape(layer).head_dim;
  }
  int64_t Cols(int64_t layer) const { return 2 * ValueColumn(layer) - KeyColumn(layer); }
  const ops::KeyIndexShape& index() const { return *geometry_.key_index; }
  int64_t IndexCols() const { return (index().heads + 1) * index().head_dim + index().heads; }
  const float* IndexAt(int64_t layer, int64_t token) const {
    return index_[layer].data() + token * IndexCols();
  }
  const float* At(int64_t layer, int64_t token, int64_t col) const {
    return layers_[layer].data() + token * Cols(layer) + col;
  }

  double Bias(int64_t head, int64_t position) const {
    const ops::Alibi& alibi = geometry_.alibi;
    if (alibi.slopes.empty()) return 0;
    const float slope = alibi.slopes[head];
    const auto place = static_cast<float>(position);
    if (!alibi.in_bf16) return double{alibi.scale} * slope * place;
    const auto rounded = [](float x) { return ToFloat(ToBF16(x)); };
    return double{alibi.scale} * rounded(rounded(slope) * rounded(place));
  }

  const RotarySpec& RotaryOf(int64_t layer) const {
    return geometry_.rotaries[geometry_.RotaryOf(layer)];
  }

  double Temperature(int64_t layer, int64_t position) const {
    const QueryTemperature& temperature = RotaryOf(layer).temperature;
    const auto counted = static_cast<double>(position + temperature.first);
    return 1 + temperature.growth *
                   std::log(1 + std::floor(counted / static_cast<double>(temperature.tokens)));
  }

  // The head at `col`, rotated to `position`.
  void Rotate(int64_t layer, int64_t token, int64_t col, int64_t position,
              std::span<double> x) const {
    RotateRow(layer, At(layer, token, col), position, x);
  }
  void RotateRow(int64_t layer, const float* from, int64_t position, std::span<double> x) const {
    std::copy_n(from, x.size(), x.begin());
    const std::vector<double>& periods = periods_[geometry_.RotaryOf(layer)];
    for (size_t a = 0; a < periods.size(); ++a) {
      const double angle = static_cast<double>(position) / periods[a];
      const double sin = std::sin(angle), cos = std::cos(angle);
      const size_t b = a + periods.size();
      const double left = x[a], right = x[b];
      x[a] = left * cos - right * sin;
      x[b] = right * cos + left * sin;
    }
  }

  AttentionGeometry geometry_;
  int64_t tokens_;
  std::vector<std::vector<double>> periods_;  // of the pairs of each rotation, over two pi
  std::vector<std::vector<float>> layers_;
  std::vector<std::vector<float>> sink_logits_;
  std::vector<std::vector<float>> key_means_;
  std::vector<std::vector<float>> index_;  // [tokens, IndexCols]: q of all heads, k, weights
};

// An empty text by a spec of --kv. Its pages have held something else: NaN in every type.
inline std::unique_ptr<TextCache> NewText(const AttentionGeometry& geometry,
                                          const PolicyOptions& options,
                                          std::shared_ptr<KvPool> pool = nullptr) {
  if (pool == nullptr) pool = std::make_shared<KvPool>(LayoutOf(geometry, options.kv_type));
  std::vector<KvPool::PageId> ids(32);
  std::vector<PageData> pages(ids.size());
  pool->Take(ids, pages);
  for (const PageData page : pages) {
    std::ranges::fill(HostBytes(page, pool->layout().page_bytes()), std::byte{0xff});
  }
  pool->Release(ids);
  return MakeTextCache(geometry, options, std::move(pool));
}

// Rows of a TestText that one text of a step brings.
struct StepRows {
  TextCache* cache;
  const TestText* text;
  std::vector<int64_t> rows;  // rows of `text`, at their places in it, or drafts from anywhere
  std::vector<int32_t> parents = {};  // Segment::parents
};

inline std::vector<int64_t> RowRange(int64_t begin, int64_t end) {
  std::vector<int64_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

// The best kernels, chosen once: a test may make many runners.
inline const kernels::KernelTable& BestKernels() {
  static const kernels::KernelTable& best = *kernels::SelectIsa("").table;
  return best;
}

// A machine for steps.
class StepRunner {
 public:
  explicit StepRunner(int threads = 1, const kernels::KernelTable& kernels = BestKernels())
      : pool_(threads), kernels_(kernels) {}

  Exec exec() { return {.pool = pool_, .kernels = kernels_, .workspace = workspace_}; }

  // One step of all texts. Result, for each: [rows, ResultSize].
  std::vector<std::vector<float>> Run(std::span<const StepRows> texts, bool end = true) {
    Workspace::Scope scope(workspace_);
    std::vector<std::vector<int32_t>> tokens;
    std::vector<Segment> segments;
    for (const StepRows& one : texts) {
      tokens.emplace_back(one.rows.size());
      segments.push_back({.tokens = tokens.back(), .text = one.cache, .parents = one.parents});
    }
    const AttentionGeometry& geometry = texts.front().cache->geometry();
    std::vector<std::vector<float>> results(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      results[i].resize(texts[i].rows.size() * static_cast<size_t>(ResultSize(geometry)));
    }
    AttentionStep step(exec(), segments);
    int64_t col = 0;
    for (int64_t layer = 0; layer < geometry.layers; ++layer) {
      for (int64_t time = 0; time < TimesRead(geometry, layer); ++time) {
        col += Attend(step, layer, time, texts, col, results);
      }
    }
    if (end) step.End();
    return results;
  }

  // Lets the text read these rows, `chunk` in a step.
  std::vector<float> Read(TextCache& cache, const TestText& text, std::span<const int64_t> rows,
                          int64_t chunk) {
    std::vector<float> all;
    while (!rows.empty()) {
      const auto some = rows.first(std::min(rows.size(), static_cast<size_t>(chunk)));
      const StepRows step{&cache, &text, {some.begin(), some.end()}};
      const auto out = Run({&step, 1})[0];
      all.insert(all.end(), out.begin(), out.end());
      rows = rows.subspan(some.size());
    }
    return all;
  }

 private:
  // Attends to a layer, at first with its own keys. Writes results from column `col` on and returns
  // their number.
  int64_t Attend(AttentionStep& step, int64_t layer, int64_t time, std::span<const StepRows> texts,
                 int64_t col, std::vector<std::vector<float>>& results) {
    const AttentionGeometry& geometry = texts.front().cache->geometry();
    const ops::AttentionShape& shape = geometry.ShapeOf(layer);
    const int64_t q_cols = shape.heads * shape.head_dim, kv_cols = shape.kv_heads * shape.head_dim;
    const int64_t out_cols = shape.heads * shape.value_dim();
    int64_t rows = 0;
    for (const StepRows& one : texts) rows += std::ssize(one.rows);
    Workspace::Scope scope(workspace_);
    const auto q = workspace_.Matrix<float>(rows, q_cols);
    const auto k = workspace_.Matrix<float>(time > 0 ? 0 : rows, kv_cols);
    const auto v = workspace_.Matrix<float>(time > 0 || shape.values_from ? 0 : rows, kv_cols);
    const auto out = workspace_.Matrix<float>(rows, out_cols);
    const ops::KeyIndexShape index = geometry.key_index.value_or(ops::KeyIndexShape{});
    const auto index_q = workspace_.Matrix<float>(rows, index.heads * index.head_dim);
    const auto index_k = workspace_.Matrix<float>(rows, index.head_dim);
    const auto index_weights = workspace_.Matrix<float>(rows, index.heads);
    int64_t row = 0;
    for (const StepRows& one : texts) {
      for (const int64_t from : one.rows) {
        const AttentionInput input = one.text->Input(layer, from, from + 1);
        const auto queries = time > 0 ? one.text->ReaderQueries(layer, time, from) : input.q;
        std::ranges::copy(queries.RowSpan(0), q.Row(row));
        if (k.rows > 0) std::ranges::copy(input.k.RowSpan(0), k.Row(row));
        if (v.rows > 0) std::ranges::copy(input.v.RowSpan(0), v.Row(row));
        if (input.index_k.rows > 0) {
          std::ranges::copy(input.index_q.RowSpan(0), index_q.Row(row));
          std::ranges::copy(input.index_k.RowSpan(0), index_k.Row(row));
          std::ranges::copy(input.index_weights.RowSpan(0), index_weights.Row(row));
        }
        ++row;
      }
    }
    const AttentionInput constants = texts.front().text->Input(layer, 0, 0);
    AttentionInput all{.q = q,
                       .k = k,
                       .v = v,
                       .reader = time,
                       .sink_logits = constants.sink_logits,
                       .key_means = constants.key_means};
    if (layer < geometry.index_layers) {
      all.index_q = index_q;
      all.index_k = index_k;
      all.index_weights = index_weights;
    }
    step.Attend(layer, all, out);
    row = 0;
    for (std::vector<float>& result : results) {
      for (int64_t at = col; at < std::ssize(result); at += ResultSize(geometry)) {
        std::ranges::copy(out.RowSpan(row++), result.begin() + at);
      }
    }
    return out_cols;
  }

  ThreadPool pool_;
  Workspace workspace_;
  const kernels::KernelTable& kernels_;
};

// Lets the cache read tokens [cache.length(), end) of the text. Result: [tokens, layers * heads *
// value_dim].
inline std::vector<float> ReadText(TextCache& cache, const TestText& text, int64_t end,
                                   int64_t chunk, int threads = 1,
                                   const kernels::KernelTable& kernels = BestKernels()) {
  // Runners are kept: threads and scratch memory take longer to make than most texts to read.
  thread_local std::map<std::pair<int, const kernels::KernelTable*>, StepRunner> runners;
  StepRunner& runner = runners.try_emplace({threads, &kernels}, threads, kernels).first->second;
  return runner.Read(cache, text, RowRange(cache.length(), end), chunk);
}

}  // namespace godwit
