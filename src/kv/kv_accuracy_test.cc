// The error of stored keys and values, and of products with them as they are stored. Attention over
// a cache is compared with a softmax in double over the original numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/kernel_test_support.h"
#include "kv/kv_cache.h"
#include "ops/attention.h"
#include "ops/store_row.h"

namespace godwit::kv_accuracy_test {
namespace {

constexpr int64_t kTokens = 4096;
constexpr int64_t kHeads = 8;  // share one KV head

struct Text {
  int64_t head_dim;
  std::vector<float> q, k, v;  // [kHeads, head_dim], [kTokens, head_dim] each
};

// Scores have the given standard deviation. dominant: the lead of one key's score over all others.
Text RandomText(int64_t head_dim, float deviation, float dominant, uint32_t seed) {
  Text text{head_dim, {}, {}, {}};
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  const auto fill = [&](std::vector<float>& out, int64_t rows, float size) {
    for (int64_t i = 0; i < rows * head_dim; ++i) out.push_back(size * normal(engine));
  };
  fill(text.q, 1, deviation);
  for (int64_t i = head_dim; i < kHeads * head_dim; ++i) {  // nearly the same query
    text.q.push_back(text.q[i % head_dim] + 0.1f * deviation * normal(engine));
  }
  fill(text.k, kTokens, 1);
  fill(text.v, kTokens, 1);
  if (dominant > 0) {
    const double square =
        std::inner_product(text.q.begin(), text.q.begin() + head_dim, text.q.begin(), 0.0);
    for (int64_t d = 0; d < head_dim; ++d) {
      text.k[1000 * head_dim + d] =
          static_cast<float>(text.q[d] * dominant * std::sqrt(head_dim) / square);
    }
  }
  return text;
}

std::vector<double> Exact(const Text& text, int64_t head) {
  const int64_t n = text.head_dim;
  std::vector<double> out(n), weights;
  for (int64_t t = 0; t < kTokens; ++t) {
    const double score = std::inner_product(
        text.q.begin() + head * n, text.q.begin() + (head + 1) * n, text.k.begin() + t * n, 0.0);
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(n))));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t d = 0; d < n; ++d) {
      out[d] += weights[t] / sum * text.v[t * n + d];
    }
  }
  return out;
}

class KvAccuracyTest : public kernels::IsaTest {
 protected:
  // The largest error of the worst head, relative to its largest output. centre: of all keys.
  double Error(const Text& text, DType dtype, bool int8_products,
               const std::vector<float>& centre = {}) const {
    const int64_t n = text.head_dim;
    KvCache cache(std::make_shared<KvPool>(KvLayout{
        .layers = 1, .kv_heads = 1, .head_dim = n, .dtype = dtype, .centred = !centre.empty()}));
    cache.Reserve(kTokens);
    for (int64_t tile = 0; !centre.empty() && tile < PagesFor(kTokens); ++tile) {
      ops::StoreCentre(table(), cache.layout(), cache.View(0), 0, tile, centre);
    }
    for (int64_t t = 0; t < kTokens; ++t) {
      ops::StoreRow(table(), cache.layout(), cache.View(0), 0, 0, t, &text.k[t * n],
                    &text.v[t * n]);
    }
    ThreadPool pool(2);
    Workspace workspace;
    const Exec exec{.pool = pool, .kernels = table(), .workspace = workspace};
    const ops::AttentionSource source{
        .kv = cache.View(0), .q = {text.q.data(), kHeads, n, n}, .int8_products = int8_products};
    const ops::AttentionRows rows{
        .first_row = 0, .rows = 1, .position = kTokens - 1, .sources = {&source, 1}};
    std::vector<float> out(kHeads * n);
    ops::Attention(exec,
                   {.heads = kHeads,
                    .kv_heads = 1,
                    .head_dim = n,
                    .scale = 1 / std::sqrt(static_cast<float>(n))},
                   {}, {&rows, 1}, {}, {out.data(), 1, kHeads * n, kHeads * n});
    double worst = 0;
    for (int64_t head = 0; head < kHeads; ++head) {
      if (cache.layout().rotated_values()) table().hadamard(n, &out[head * n]);
      const std::vector<double> exact = Exact(text, head);
      double error = 0, largest = 0;
      for (int64_t d = 0; d < n; ++d) {
        const double want = exact[d];
        error = std::max(error, std::fabs(out[head * n + d] - want));
        largest = std::max(largest, std::fabs(want));
      }
      worst = std::max(worst, error / largest);
    }
    return worst;
  }
};
using kernels::IsaPointers, kernels::IsaTestName;
GODWIT_FOR_EVERY_ISA(KvAccuracyTest);

struct Storage {
  DType dtype;
  bool int8_products;
  double flat, sharp, dominated;  // the largest errors allowed
};
// Bounds are about twice the measured errors.
constexpr Storage kStorages[] = {
    {DType::kF32, false, 2e-6, 1e-5, 6e-7},  {DType::kF16, false, 6e-4, 3e-3, 8e-4},
    {DType::kBF16, false, 8e-3, 3e-2, 6e-3}, {DType::kI8, false, 2.5e-2, 7e-2, 1.2e-2},
    {DType::kI8, true, 4e-2, 1.2e-1, 8e-3},  {DType::kI8I4, true, 2e-1, 2e-1, 2e-1},
    {DType::kI4, false, 3e-1, 1.2, 2e-1},    {DType::kI4, true, 3e-1, 1.2, 2e-1}};

TEST_P(KvAccuracyTest, RELEASE_StaysWithinWhatEachTypeCosts) {
  for (const int64_t head_dim : {64, 80, 128}) {
    const Text flat = RandomText(head_dim, 1, 0, 1);
    const Text sharp = RandomText(head_dim, 4, 0, 2);
    const Text dominated = RandomText(head_dim, 1, 18, 3);
    for (const Storage& storage : kStorages) {
      const auto error = [&](const Text& text) {
        return Error(text, storage.dtype, storage.int8_products);
      };
      SCOPED_TRACE(testing::Message() << Name(storage.dtype) << " heads of " << head_dim);
      EXPECT_LT(error(flat), storage.flat);
      EXPECT_LT(error(sharp), storage.sharp);
      EXPECT_LT(error(dominated), storage.dominated);
    }
  }
}

// Keys as the biases of Qwen make them: a few numbers that all keys share are a hundred times
// larger than the differences between keys.
TEST_P(KvAccuracyTest, KeysWithALargeMeanCostNoMoreThanOthersWhereItIsTheirCentre) {
  for (const int64_t head_dim : {64, 128}) {
    Text text = RandomText(head_dim, 1, 0, 4);
    std::vector<float> mean(head_dim);
    mean[3] = 211;
    mean[20] = -90.3f;
    for (size_t i = 0; i < text.k.size(); ++i) {
      text.k[i] += mean[i % static_cast<size_t>(head_dim)];
    }
    for (const bool int8_products : {false, true}) {
      SCOPED_TRACE(testing::Message() << "heads of " << head_dim << ", int8 " << int8_products);
      const double without = Error(text, DType::kI8, int8_products);
      const double with = Error(text, DType::kI8, int8_products, mean);
      EXPECT_LT(with, int8_products ? 4e-2 : 2.5e-2);  // kStorages
      EXPECT_LT(3 * with, without);
    }
  }
}

}  // namespace
}  // namespace godwit::kv_accuracy_test
