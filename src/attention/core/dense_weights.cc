#include "attention/core/dense_weights.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "ops/alibi.h"
#include "ops/read_keys.h"

namespace godwit {

DenseWeights ComputeDenseWeights(const AttentionGeometry& geometry, const RowRun& run,
                                 int64_t layer, const float* q, int64_t head) {
  const ops::AttentionShape& shape = geometry.ShapeOf(layer);
  const ops::KvView kv = run.cache->View(layer);
  const int64_t keys = run.position + 1;
  const int64_t first = geometry.SeenIn(layer).At(run.position).begin;
  DenseWeights result{.weights = std::vector<double>(keys)};
  const auto seen = std::span(result.weights).subspan(first);
  std::vector<float> tile_keys(shape.head_dim * kTileTokens);
  for (int64_t tile = first / kTileTokens; tile * kTileTokens < keys; ++tile) {
    const int64_t begin = tile * kTileTokens;
    ops::ReadKeys(kv, shape.head_dim, head * shape.kv_heads / shape.heads, tile, tile_keys.data(),
                  kTileTokens);
    double scores[kTileTokens] = {};
    for (size_t i = 0; i < tile_keys.size(); ++i) {
      scores[i % kTileTokens] += double{q[i / kTileTokens]} * double{tile_keys[i]};
    }
    float biases[kTileTokens];
    ops::FillAlibi(geometry.alibi, head, {.query = run.position, .shift = 0}, begin, biases);
    for (int64_t p = std::max(first, begin); p < std::min(keys, begin + kTileTokens); ++p) {
      double score = scores[p - begin] * double{shape.scale};
      if (shape.score_cap != 0) score = shape.score_cap * std::tanh(score / shape.score_cap);
      result.weights[p] = score + double{biases[p - begin]};
    }
  }
  const double largest = *std::ranges::max_element(seen);
  double sum = 0;
  for (double& weight : seen) sum += weight = std::exp(weight - largest);
  for (double& weight : seen) weight /= sum;
  result.log_sum = largest + std::log(sum);
  return result;
}

void RequireDenseWeights(const AttentionGeometry& geometry, const char* measured) {
  if (geometry.layer_shapes.empty() && geometry.readers.empty()) return;
  Throw(ErrorKind::kUnsupported,
        "{} measured for models whose layers have equal heads and keys of their own", measured);
}

}  // namespace godwit
