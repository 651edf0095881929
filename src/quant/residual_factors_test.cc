// Factors on the residual branch against equation 3.4, in a model whose blocks read the stream
// itself. They also show how far such factors fold into weights.

#include "quant/residual_factors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "quant/quant_test_support.h"

namespace godwit::quant::residual_factors_test {
namespace {

constexpr int64_t kTokens = 20;
constexpr int64_t kChannels = 16;
constexpr int64_t kLoud = 5;  // a channel of the stream
const std::vector<std::string> kReaders = {"self_attn.q_proj", "self_attn.k_proj",
                                           "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"};

// OLMo 2: norms stand behind the blocks, and none before them.
struct Olmo2 {
  Olmo2()
      : spec(SmallSpecOf("olmo2", R"("num_key_value_heads":2)")),
        weights(spec),
        tensors(Complete()) {}

  ModelTensors Complete() {
    for (int64_t layer = 0; layer < spec.layers; ++layer) {
      const std::string name = fmt::format("model.layers.{}.", layer);
      weights.Remove(name + "input_layernorm.weight");
      weights.Add(name + "post_feedforward_layernorm.weight", DType::kF32, {kChannels});
      weights.Add(name + "self_attn.q_norm.weight", DType::kF32, {kChannels});
      weights.Add(name + "self_attn.k_norm.weight", DType::kF32, {kChannels / 2});
    }
    return ResolveTensors(spec, weights);
  }

  // Multiplies the columns of a matrix, or the elements of a vector, by factors [kChannels].
  void Multiply(const std::string& name, const std::vector<float>& factors) {
    const int64_t elements = weights.Find(name)->NumElements();
    for (int64_t i = 0; i < elements; ++i) {
      weights.Set(name, i, At(name, i) * factors[i % kChannels]);
    }
  }
  float At(const std::string& name, int64_t i) {
    return reinterpret_cast<const float*>(weights.Bytes(name).data())[i];
  }
  void MultiplyReaders(const std::vector<float>& factors) {
    for (int64_t layer = 0; layer < spec.layers; ++layer) {
      for (const std::string& reader : kReaders) {
        Multiply(fmt::format("model.layers.{}.{}.weight", layer, reader), factors);
      }
    }
  }
  // The makers of the stream: the embedding, and the gains behind the blocks.
  void MultiplyMakers(const std::vector<float>& factors) {
    Multiply("model.embed_tokens.weight", factors);
    for (int64_t layer = 0; layer < spec.layers; ++layer) {
      const std::string name = fmt::format("model.layers.{}.post_", layer);
      Multiply(name + "attention_layernorm.weight", factors);
      Multiply(name + "feedforward_layernorm.weight", factors);
    }
  }

  DecoderSpec spec;
  FakeWeights weights;
  ModelTensors tensors;
};

struct Outputs {
  std::vector<float> states;  // [kTokens, kChannels] before the last norm
  std::vector<float> logits;  // [kTokens, vocab]
};

Outputs Read(const Olmo2& model, const LinearFilter* filter = nullptr) {
  const auto decoder = Load(model.spec, model.weights);
  const TestExec exec;
  Exec filtered = *exec;
  filtered.filter = filter;
  const auto text = DenseText(model.spec);
  const auto pieces = TestPieces(1, kTokens);
  const int64_t vocab = decoder->vocab_size();
  Outputs outputs{.states = std::vector<float>(kTokens * kChannels),
                  .logits = std::vector<float>(kTokens * vocab)};
  const Segment segment{pieces[0], text.get()};
  const MatrixView<float> hidden{outputs.states.data(), kTokens, kChannels, kChannels};
  decoder->Forward(filtered, {&segment, 1}, hidden);
  decoder->Logits(filtered, hidden, {outputs.logits.data(), kTokens, vocab, vocab});
  return outputs;
}

Calibration Calibrated(const Olmo2& model) {
  const auto decoder = Load(model.spec, model.weights);
  const TestExec exec;
  return Calibrate(*exec, *decoder, TestPieces(1, kTokens), nullptr);
}

// A stream with an outlier, which the blocks do not see.
struct LoudOlmo2 : Olmo2 {
  LoudOlmo2() {
    std::vector<float> factors(kChannels, 1.0f), inverse(kChannels, 1.0f);
    factors[kLoud] = 256;
    inverse[kLoud] = 1 / 256.0f;
    MultiplyMakers(factors);
    MultiplyReaders(inverse);
  }
};

TEST(ResidualFactors, AreThoseOfTheFormula) {
  LoudOlmo2 model;
  ASSERT_TRUE(ReadsResidualSums(model.spec, model.tensors));
  const Calibration calibration = Calibrated(model);
  const TestExec exec;
  constexpr double kAlpha = 0.75;
  const ChannelValues factors =
      ResidualFactors(*exec, model.spec, model.tensors, calibration, static_cast<float>(kAlpha));
  // Readers of attention's output and of the MLP's have no residual sum.
  EXPECT_EQ(std::ssize(factors), 2 * model.spec.layers);
  for (int64_t layer = 0; layer < model.spec.layers; ++layer) {
    for (const bool mlp : {false, true}) {
      const auto readers = mlp ? std::span(kReaders).subspan(3) : std::span(kReaders).first(3);
      const auto found = std::ranges::find_if(factors, [&](const auto& one) {
        return one.first.starts_with(
            fmt::format("model.layers.{}.{}", layer, mlp ? "mlp.gate" : "self_attn.q"));
      });
      ASSERT_NE(found, factors.end());
      ASSERT_EQ(std::ssize(found->second), kChannels);
      for (int64_t j = 0; j < kChannels; ++j) {
        double largest = 0;
        for (const std::string& reader : readers) {
          const std::string name = fmt::format("model.layers.{}.{}.weight", layer, reader);
          for (int64_t i = j; i < model.weights.Find(name)->NumElements(); i += kChannels) {
            largest = std::max(largest, std::fabs(double{model.At(name, i)}));
          }
        }
        const double input = calibration.find(found->first)->second.largest[j];
        const double expected = std::pow(input, kAlpha) / std::pow(largest, 1 - kAlpha);
        EXPECT_NEAR(found->second[j], expected, 1e-5 * expected) << found->first << j;
      }
    }
  }
}

// x W = (x / s) (s W) where int8 rounds x / s, in double.
TEST(ResidualFactors, DivideBeforeTheRoundingAndMultiplyAfterIt) {
  const std::vector<float> values{0.5f, -90.0f, 3, 0.25f, 127, -1}, largest{1, 127, 4},
      factors{0.5f, 64, 2};
  for (const InputGrid grid : {InputGrid::kTensor, InputGrid::kToken}) {
    std::vector<float> simulated = values;
    SimulateInt8(grid, largest, factors, {simulated.data(), 2, 3, 3});
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t row = i / 3 * 3;
      double magnitude = 0;
      for (size_t j = 0; j < 3; ++j) {
        const float of = grid == InputGrid::kTensor ? largest[j] : values[row + j];
        magnitude = std::max(magnitude, std::fabs(double{of}) / factors[j]);
      }
      const double scale = magnitude / 127;
      const double integer =
          std::clamp(std::nearbyint(values[i] / factors[i % 3] / scale), -127.0, 127.0);
      EXPECT_NEAR(simulated[i], factors[i % 3] * scale * integer, 1e-5) << i;
    }
  }
}

TEST(ResidualFactors, HelpAModelWithAnOutlierInItsStream) {
  const LoudOlmo2 model;
  const Calibration calibration = Calibrated(model);
  const auto largest = LargestOfQuantized(model.tensors, calibration);
  const TestExec exec;
  const ChannelValues factors =
      ResidualFactors(*exec, model.spec, model.tensors, calibration, 0.5f);
  const Outputs exact = Read(model);
  const auto error = [&](InputGrid grid, const ChannelValues& of) {
    const LinearFilter filter = SimulateInputs(grid, largest, of);
    const Outputs simulated = Read(model, &filter);
    double sum = 0, all = 0;
    for (size_t i = 0; i < exact.logits.size(); ++i) {
      sum += std::pow(exact.logits[i] - simulated.logits[i], 2);
      all += std::pow(exact.logits[i], 2);
    }
    return std::sqrt(sum / all);
  };
  for (const InputGrid grid : {InputGrid::kTensor, InputGrid::kToken}) {
    EXPECT_LT(4 * error(grid, factors), error(grid, {}));
    EXPECT_GT(error(grid, factors), 0);
  }
}

// One s for the whole stream folds into the tensors that make it and into those that read it. It
// does so to the bit for powers of two. Behind the last norm each token has a factor of its own.
TEST(ResidualFactors, FoldUpToTheLastNorm) {
  Olmo2 model;
  const Outputs plain = Read(model);
  std::vector<float> s, inverse;
  for (int64_t j = 0; j < kChannels; ++j) {
    s.push_back(std::ldexp(1.0f, static_cast<int>(j * j % 9) - 4));
    inverse.push_back(1 / s.back());
  }
  model.MultiplyMakers(inverse);
  model.MultiplyReaders(s);
  model.Multiply("lm_head.weight", s);
  const Outputs folded = Read(model);
  for (size_t i = 0; i < plain.states.size(); ++i) {
    ASSERT_EQ(folded.states[i], plain.states[i] * inverse[i % kChannels]) << i;
  }
  const auto mean_square = [&](const std::vector<float>& states, int64_t token) {
    double sum = model.spec.norm_epsilon;
    for (int64_t j = 0; j < kChannels; ++j) {
      sum += std::pow(double{states[token * kChannels + j]}, 2) / kChannels;
    }
    return sum;
  };
  const int64_t vocab = model.spec.vocab_size;
  double least = INFINITY, most = 0;
  for (int64_t token = 0; token < kTokens; ++token) {
    const double ratio =
        std::sqrt(mean_square(plain.states, token) / mean_square(folded.states, token));
    least = std::min(least, ratio);
    most = std::max(most, ratio);
    for (int64_t i = token * vocab; i < (token + 1) * vocab; ++i) {
      EXPECT_NEAR(folded.logits[i], ratio * plain.logits[i], 1e-4 * ratio) << i;
    }
  }
  EXPECT_GT(most, 1.05 * least) << "no gain of the last norm undoes this";
}

TEST(ResidualFactors, ModelsWithNormsBeforeTheirBlocksHaveNone) {
  const TestModel model;
  EXPECT_FALSE(ReadsResidualSums(model.spec, model.tensors));
}

}  // namespace
}  // namespace godwit::quant::residual_factors_test
