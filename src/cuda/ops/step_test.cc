// A small model from tokens to logits on an emulated GPU, step after step: operations that fit
// together, beside the same model of scalar kernels.
#include <algorithm>
#include <array>
#include <cmath>

#include "cuda/ops/attention.h"
#include "cuda/ops/embedding.h"
#include "cuda/ops/linear.h"
#include "cuda/ops/norm.h"
#include "cuda/ops/store_keys.h"
#include "cuda/test_support.h"
#include "kernels/kernel_table.h"

namespace godwit::cuda::step_test {
namespace {

using kernels::kTileTokens;

constexpr int64_t kLayers = 2, kHidden = 50, kHeads = 6, kKvHeads = 2, kHeadDim = 16;
constexpr int64_t kMlp = 75, kVocabulary = 70, kTokens = 140, kTiles = 3;
constexpr int64_t kQ = kHeads * kHeadDim, kKv = kKvHeads * kHeadDim, kHalf = kHeadDim / 2;
constexpr float kScale = 0.3f, kNormEpsilon = 1e-5f;
constexpr int64_t kKeyBytes = kHeadDim * kTileTokens * 2;
constexpr int64_t kHeadBytes = kKeyBytes + kTileTokens * kernels::PadToLanes(kHeadDim) * 2;
constexpr int64_t kPageBytes = kKvHeads * kHeadBytes;

// A bf16 weight [outputs, inputs], packed.
struct Linear {
  Linear(int64_t n_outputs, int64_t n_inputs, uint32_t seed)
      : outputs(n_outputs),
        inputs(n_inputs),
        panels(Packed(DType::kBF16,
                      RoundedToBF16(RandomNumbers(outputs * inputs, seed,
                                                  -2 / std::sqrt(static_cast<float>(inputs)),
                                                  2 / std::sqrt(static_cast<float>(inputs)))),
                      outputs, inputs)) {}
  int64_t outputs, inputs;
  std::vector<std::byte> panels;
};

struct Layer {
  explicit Layer(uint32_t seed)
      : attention_norm(RandomNumbers(kHidden, seed, 0.5f, 1.5f)),
        mlp_norm(RandomNumbers(kHidden, seed + 1, 0.5f, 1.5f)),
        q(kQ, kHidden, seed + 2),
        k(kKv, kHidden, seed + 3),
        v(kKv, kHidden, seed + 4),
        o(kHidden, kQ, seed + 5),
        gate_up(2 * kMlp, kHidden, seed + 6),
        down(kHidden, kMlp, seed + 7) {}
  std::vector<float> attention_norm, mlp_norm;
  Linear q, k, v, o, gate_up, down;
};

struct Model {
  std::vector<Layer> layers;
  Linear head{kVocabulary, kHidden, 1};  // the embedding, too
  std::vector<float> norm = RandomNumbers(kHidden, 2, 0.5f, 1.5f);
  std::vector<int32_t> tokens;
  std::vector<float> cos, sin;  // [kTokens, kHalf]

  Model() {
    for (uint32_t layer = 0; layer < kLayers; ++layer) layers.emplace_back(100 * (layer + 1));
    RandomFloats random(3);
    for (int64_t i = 0; i < kTokens; ++i) {
      tokens.push_back(static_cast<int32_t>(random.Integer(0, kVocabulary - 1)));
      for (int64_t d = 0; d < kHalf; ++d) {
        const double angle =
            static_cast<double>(i) * std::pow(1e4, -static_cast<double>(d) / kHalf);
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
};

// The model on an emulated GPU.
class OnGpu {
 public:
  OnGpu(const Model& model, ThreadOrder order) : model_(model), gpu_(order) {
    for (const Layer& layer : model.layers) {
      weights_.push_back({gpu_.Put(layer.attention_norm), gpu_.Put(layer.mlp_norm), Put(layer.q),
                          Put(layer.k), Put(layer.v), Put(layer.o), Put(layer.gate_up),
                          Put(layer.down)});
      auto* const memory = gpu_.New<uint8_t>(kTiles * kPageBytes);
      std::vector<uint8_t*>& pages = page_lists_[weights_.size() - 1];
      for (int64_t tile = 0; tile < kTiles; ++tile) pages.push_back(memory + tile * kPageBytes);
      pages_.push_back(gpu_.Put(pages));
    }
    norm_ = gpu_.Put(model.norm);
    head_ = Put(model.head);
  }

  // The logits [count, kVocabulary] of the tokens from `first` on.
  std::vector<float> Step(int64_t first, int64_t count) {
    const std::vector<int32_t> tokens = RowsOf(model_.tokens, 1, first, count);
    const std::vector<float> cos = RowsOf(model_.cos, kHalf, first, count);
    const std::vector<float> sin = RowsOf(model_.sin, kHalf, first, count);
    const DeviceRotary rotary = {.cos = gpu_.Put(cos), .sin = gpu_.Put(sin), .half = kHalf};
    const auto x = gpu_.NewMatrix<float>(count, kHidden);
    EmbedTokens(gpu_.stream(), gpu_.Put(tokens),
                {.data = head_.panels,
                 .dtype = DType::kBF16,
                 .packed = true,
                 .rows = kVocabulary,
                 .cols = kHidden},
                0, x);
    for (size_t layer = 0; layer < weights_.size(); ++layer) {
      Attention(weights_[layer], pages_[layer], rotary, first, x);
      Mlp(weights_[layer], x);
    }
    const auto logits = Multiply(head_, Normed(x, norm_));
    return gpu_.GetMatrix(logits);
  }

 private:
  struct Weights {
    const float *attention_norm, *mlp_norm;
    DeviceWeight q, k, v, o, gate_up, down;
  };

  DeviceWeight Put(const Linear& linear) {
    return {.panels = gpu_.Put(linear.panels), .outputs = linear.outputs, .inputs = linear.inputs};
  }
  DeviceMatrix<BF16> Normed(DeviceMatrix<const float> x, const float* weight) {
    const auto out = gpu_.NewMatrix<BF16>(x.rows, x.cols);
    RmsNormRows(gpu_.stream(), x, weight, kNormEpsilon, out);
    return out;
  }
  DeviceMatrix<float> Multiply(const DeviceWeight& w, DeviceMatrix<const BF16> x) {
    const auto out = gpu_.NewMatrix<float>(x.rows, w.outputs);
    LinearBF16(gpu_.stream(), x, w, out);
    return out;
  }

  void Attention(const Weights& w, uint8_t* const* pages, const DeviceRotary& rotary, int64_t first,
                 DeviceMatrix<float> x) {
    const Stream& stream = gpu_.stream();
    const DeviceMatrix<BF16> normed = Normed(x, w.attention_norm);
    DeviceRotary of_queries = rotary;
    of_queries.rounded = true;
    const auto q = gpu_.NewMatrix<float>(x.rows * kHeads, kHeadDim);
    const auto k = gpu_.NewMatrix<float>(x.rows * kKvHeads, kHeadDim);
    RotateHeads(stream, Multiply(w.q, normed), kHeads, kKvHeads, of_queries, q);
    RotateHeads(stream, Multiply(w.k, normed), kKvHeads, kKvHeads, rotary, k);
    StoreKeyRows(stream, k, Multiply(w.v, normed), first,
                 {.pages = pages,
                  .head_bytes = kHeadBytes,
                  .value_offset = kKeyBytes,
                  .dtype = DType::kBF16},
                 nullptr);
    const DeviceAttentionShape shape = {.heads = kHeads,
                                        .kv_heads = kKvHeads,
                                        .head_dim = kHeadDim,
                                        .value_dim = kHeadDim,
                                        .scale = kScale};
    const DeviceQueries queries = {.q = q, .tokens = x.rows, .position = first};
    const auto out = gpu_.NewMatrix<float>(x.rows, kQ);
    Attend(stream, shape,
           {.pages = pages,
            .head_bytes = kHeadBytes,
            .value_offset = kKeyBytes,
            .dtype = DType::kBF16},
           queries, gpu_.New<float>(AttentionScratchBytes(shape, queries) / 4), nullptr, nullptr,
           out);
    const auto narrow = gpu_.NewMatrix<BF16>(x.rows, kQ);
    ActivateRows(stream, ActivationKind::kNone, out, narrow);
    AddRows(stream, Multiply(w.o, narrow), x);
  }

  void Mlp(const Weights& w, DeviceMatrix<float> x) {
    const auto gated = gpu_.NewMatrix<BF16>(x.rows, kMlp);
    ActivateGatedRows(gpu_.stream(), ActivationKind::kSilu,
                      Multiply(w.gate_up, Normed(x, w.mlp_norm)), gated);
    AddRows(gpu_.stream(), Multiply(w.down, gated), x);
  }

  const Model& model_;
  std::array<std::vector<uint8_t*>, kLayers> page_lists_;
  TestGpu gpu_;
  std::vector<Weights> weights_;
  std::vector<uint8_t* const*> pages_;
  const float* norm_;
  DeviceWeight head_;
};

// The model by scalar kernels, all tokens at once.
class OnCpu {
 public:
  explicit OnCpu(const Model& model) : model_(model) {}

  std::vector<float> Logits() const {
    std::vector<float> x;
    for (const int32_t token : model_.tokens) {
      const std::vector<float> row = EmbeddingOf(token);
      x.insert(x.end(), row.begin(), row.end());
    }
    for (const Layer& layer : model_.layers) {
      const std::vector<float> normed = Normed(x, layer.attention_norm);
      Add(Multiply(layer.o, Attention(Multiply(layer.q, normed), Multiply(layer.k, normed),
                                      Multiply(layer.v, normed))),
          x);
      const std::vector<float> gate_up = Multiply(layer.gate_up, Normed(x, layer.mlp_norm));
      std::vector<float> gated(kTokens * kMlp);
      for (int64_t row = 0; row < kTokens; ++row) {
        const float* const gate = gate_up.data() + row * 2 * kMlp;
        Scalar().silu(gate, kMlp, gated.data() + row * kMlp);
        Scalar().multiply(gated.data() + row * kMlp, gate + kMlp, kMlp, gated.data() + row * kMlp);
      }
      Add(Multiply(layer.down, gated), x);
    }
    return Multiply(model_.head, Normed(x, model_.norm));
  }

 private:
  std::vector<float> EmbeddingOf(int64_t token) const {
    const auto* const panels = reinterpret_cast<const BF16*>(model_.head.panels.data());
    std::vector<float> row;
    for (int64_t d = 0; d < kHidden; ++d) {
      const int64_t panel = token / kernels::kPanelColumns, column = token % kernels::kPanelColumns;
      row.push_back(ToFloat(panels[panel * kHidden * kernels::kPanelColumns +
                                   (d / 2 * kernels::kPanelColumns + column) * 2 + d % 2]));
    }
    return row;
  }

  static std::vector<float> Normed(const std::vector<float>& x, const std::vector<float>& weight) {
    std::vector<float> out(x.size());
    for (int64_t row = 0; row < kTokens; ++row) {
      Scalar().rms_norm(x.data() + row * kHidden, weight.data(), kNormEpsilon, kHidden,
                        out.data() + row * kHidden);
    }
    return out;
  }

  static std::vector<float> Multiply(const Linear& w, const std::vector<float>& x) {
    const int64_t stride = (w.inputs + 1) / 2 * 2;
    std::vector<BF16> narrow(kTokens * stride, BF16{0});
    for (int64_t i = 0; i < kTokens * w.inputs; ++i) {
      narrow[i / w.inputs * stride + i % w.inputs] = ToBF16(x[i]);
    }
    kernels::Guarded<std::byte> panels(std::ssize(w.panels));
    std::ranges::copy(w.panels, panels.data());
    std::vector<float> out(kTokens * w.outputs);
    Scalar().gemm_bf16({.a = narrow.data(),
                        .a_stride = stride,
                        .w = panels.data(),
                        .bias = nullptr,
                        .out = out.data(),
                        .out_stride = w.outputs,
                        .rows = kTokens,
                        .k = w.inputs,
                        .columns = w.outputs,
                        .panel_begin = 0,
                        .panel_end = kernels::PanelCount(w.outputs)});
    return out;
  }

  static void Add(const std::vector<float>& y, std::vector<float>& x) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  // The head of a row, rotated and rounded.
  std::vector<float> Rotated(const std::vector<float>& x, int64_t cols, int64_t token,
                             int64_t head) const {
    std::vector<float> row = RowsOf(x, kHeadDim, (token * cols) / kHeadDim + head, 1);
    Scalar().rotate_half(model_.cos.data() + token * kHalf, model_.sin.data() + token * kHalf,
                         kHalf, row.data());
    for (float& number : row) number = ToFloat(ToBF16(number));
    return row;
  }

  std::vector<float> Attention(const std::vector<float>& q, const std::vector<float>& k,
                               const std::vector<float>& v) const {
    std::vector<float> out;
    for (int64_t i = 0; i < kTokens * kHeads; ++i) {
      const int64_t token = i / kHeads, head = i % kHeads, kv_head = head / (kHeads / kKvHeads);
      const std::vector<float> query = Rotated(q, kQ, token, head);
      std::array<double, kHeadDim> sums = {};
      double total = 0;
      for (int64_t j = 0; j <= token; ++j) {
        const std::vector<float> key = Rotated(k, kKv, j, kv_head);
        double score = 0;
        for (int64_t d = 0; d < kHeadDim; ++d) score += double{query[d]} * key[d];
        // Rounding to bf16 does not ask for the power of two that scales all weights.
        const double weight = ToFloat(ToBF16(static_cast<float>(std::exp(kScale * score))));
        total += weight;
        for (int64_t d = 0; d < kHeadDim; ++d) {
          sums[d] += weight * ToFloat(ToBF16(v[j * kKv + kv_head * kHeadDim + d]));
        }
      }
      for (const double sum : sums) out.push_back(static_cast<float>(sum / total));
    }
    return out;
  }

  const Model& model_;
};

std::vector<float> LogitsInChunks(OnGpu& gpu, int64_t chunk) {
  std::vector<float> all;
  for (int64_t first = 0; first < kTokens; first += chunk) {
    const std::vector<float> logits = gpu.Step(first, std::min(chunk, kTokens - first));
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

TEST(Steps, HaveTheSameBitsInEveryChunk) {
  const Model model;
  OnGpu whole(model, ThreadOrder::kAscending);
  const std::vector<uint32_t> expected = BitsOf(LogitsInChunks(whole, kTokens));
  for (const int64_t chunk : {1, 7, 64}) {
    OnGpu gpu(model, chunk == 7 ? ThreadOrder::kDescending : ThreadOrder::kAscending);
    EXPECT_EQ(BitsOf(LogitsInChunks(gpu, chunk)), expected) << "chunks of " << chunk;
  }
}

// A number that is rounded to bf16 may fall on the other side, which is 2^-8 of it.
TEST(Steps, AreCloseToTheScalarKernels) {
  const Model model;
  OnGpu gpu(model, ThreadOrder::kAscending);
  const std::vector<float> logits = LogitsInChunks(gpu, 64), expected = OnCpu(model).Logits();
  double largest = 0, difference = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    ASSERT_FALSE(std::isnan(logits[i])) << i;
    largest = std::max(largest, std::fabs(double{expected[i]}));
    difference = std::max(difference, std::fabs(double{logits[i]} - expected[i]));
  }
  EXPECT_GT(largest, 0.5);
  EXPECT_LT(difference / largest, 0.01) << difference << " of " << largest;
}

}  // namespace
}  // namespace godwit::cuda::step_test
