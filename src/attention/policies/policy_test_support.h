// What the tests of policies share: a random text, a runner, and attention written down in
// double from the paper's point of view: every key is rotated anew at the position at which the
// query is said to see it. Only *_test.cc files include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

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
  geometry.rotary.rotary_dim = rotary_dim;
  geometry.rotary.theta = 100;  // so that even the slowest pair turns within a short text
  geometry.windows = std::move(windows);
  return geometry;
}

// The same without rotation and with ALiBi. A slope is enough that even a far token's place shows,
// and no bf16 number.
inline AttentionGeometry WithAlibi(AttentionGeometry geometry, bool in_bf16) {
  geometry.rotary.rotary_dim = 0;
  geometry.alibi.scale = 0.7f;
  geometry.alibi.in_bf16 = in_bf16;
  for (int64_t head = 0; head < geometry.shape.heads; ++head) {
    geometry.alibi.slopes.push_back(0.03f * static_cast<float>(head + 1));
  }
  return geometry;
}

// A key as a query sees it.
struct SeenKey {
  int64_t token;     // position in the text
  int64_t position;  // in the cache: at which it is rotated, from which ALiBi counts
};

// Random rows of a text. Odd layers have sink logits, so that every test of a policy sees both
// kinds.
class TestText {
 public:
  TestText(const AttentionGeometry& geometry, int64_t tokens, uint64_t seed)
      : geometry_(geometry),
        tokens_(tokens),
        cols_((shape().heads + 2 * shape().kv_heads) * shape().head_dim) {
    for (int64_t layer = 0; layer < geometry.layers; ++layer) {
      std::vector<float>& values = layers_.emplace_back();
      for (int64_t i = 0; i < tokens * cols_; ++i) {
        const double uniform = Uniform(seed, static_cast<uint64_t>(layer), i, 0);
        values.push_back(static_cast<float>(2 * uniform - 1));
      }
      std::vector<float>& sinks = sink_logits_.emplace_back();
      for (int64_t head = 0; layer % 2 == 1 && head < shape().heads; ++head) {
        sinks.push_back(static_cast<float>(head) / 2 - 1);
      }
    }
  }

  AttentionInput Input(int64_t layer, int64_t begin, int64_t end) const {
    const MatrixView<const float> all{layers_[static_cast<size_t>(layer)].data(), tokens_, cols_,
                                      cols_};
    const auto rows = all.Rows(begin, end);
    return {.q = rows.Cols(0, KeyColumn()),
            .k = rows.Cols(KeyColumn(), ValueColumn()),
            .v = rows.Cols(ValueColumn(), cols_),
            .sink_logits = sink_logits_[static_cast<size_t>(layer)]};
  }

  // What the head's query of `token`, standing at `position`, gets from the keys.
  std::vector<double> Attend(int64_t layer, int64_t head, int64_t token, int64_t position,
                             const std::vector<SeenKey>& keys) const {
    const int64_t kv_head = head * shape().kv_heads / shape().heads;
    const int64_t dim = shape().head_dim;
    const auto q = Rotated(layer, token, head * dim, position);
    std::vector<double> out(static_cast<size_t>(dim));
    const std::vector<float>& sinks = sink_logits_[static_cast<size_t>(layer)];
    double sum = sinks.empty() ? 0 : std::exp(double{sinks[static_cast<size_t>(head)]});
    for (const SeenKey& key : keys) {
      const auto k = Rotated(layer, key.token, KeyColumn() + kv_head * dim, key.position);
      double score = 0;
      for (size_t d = 0; d < k.size(); ++d) score += q[d] * k[d];
      const double bias = Bias(head, key.position) - Bias(head, position);
      const double weight = std::exp(score * double{shape().scale} + bias);
      sum += weight;
      for (int64_t d = 0; d < dim; ++d) {
        out[static_cast<size_t>(d)] +=
            weight * At(layer, key.token, ValueColumn() + kv_head * dim + d);
      }
    }
    for (double& x : out) x /= sum;
    return out;
  }

 private:
  const ops::AttentionShape& shape() const { return geometry_.shape; }
  int64_t KeyColumn() const { return shape().heads * shape().head_dim; }
  int64_t ValueColumn() const { return KeyColumn() + shape().kv_heads * shape().head_dim; }
  double At(int64_t layer, int64_t token, int64_t col) const {
    return layers_[static_cast<size_t>(layer)][static_cast<size_t>(token * cols_ + col)];
  }

  double Bias(int64_t head, int64_t position) const {
    const ops::Alibi& alibi = geometry_.alibi;
    if (alibi.slopes.empty()) return 0;
    const float slope = alibi.slopes[static_cast<size_t>(head)];
    const auto place = static_cast<float>(position);
    if (!alibi.in_bf16) return double{alibi.scale} * slope * place;
    const auto rounded = [](float x) { return ToFloat(ToBF16(x)); };
    return double{alibi.scale} * rounded(rounded(slope) * rounded(place));
  }

  std::vector<double> Rotated(int64_t layer, int64_t token, int64_t col, int64_t position) const {
    std::vector<double> x;
    for (int64_t d = 0; d < shape().head_dim; ++d) x.push_back(At(layer, token, col + d));
    const int64_t half = geometry_.rotary.rotary_dim / 2;
    for (int64_t i = 0; i < half; ++i) {
      const double exponent = static_cast<double>(i) / static_cast<double>(half);
      const double angle =
          static_cast<double>(position) / std::pow(geometry_.rotary.theta, exponent);
      const auto a = static_cast<size_t>(i), b = static_cast<size_t>(i + half);
      const double left = x[a], right = x[b];
      x[a] = left * std::cos(angle) - right * std::sin(angle);
      x[b] = right * std::cos(angle) + left * std::sin(angle);
    }
    return x;
  }

  AttentionGeometry geometry_;
  int64_t tokens_;
  int64_t cols_;
  std::vector<std::vector<float>> layers_;
  std::vector<std::vector<float>> sink_logits_;
};

// Lets the policy read tokens [policy.length(), end). Result: [tokens, layers * heads * head_dim].
inline std::vector<float> ReadText(AttentionPolicy& policy, const AttentionGeometry& geometry,
                                   const TestText& text, int64_t end, int64_t chunk,
                                   int threads = 1) {
  ThreadPool pool(threads);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  const int64_t cols = geometry.shape.heads * geometry.shape.head_dim;
  const int64_t first = policy.length();
  std::vector<float> all(static_cast<size_t>((end - first) * geometry.layers * cols));
  const MatrixView<float> out{all.data(), end - first, geometry.layers * cols,
                              geometry.layers * cols};
  while (policy.length() < end) {
    const int64_t at = policy.length();
    const int64_t to = std::min(end, at + chunk);
    policy.Begin(to - at);
    for (int64_t layer = 0; layer < geometry.layers; ++layer) {
      policy.Attend(layer, text.Input(layer, at, to), exec,
                    out.Rows(at - first, to - first).Cols(layer * cols, (layer + 1) * cols));
    }
    policy.End();
  }
  return all;
}

}  // namespace godwit
