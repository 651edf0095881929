#include "quant/smooth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "quant/linear_layers.h"
#include "quant/quant_test_support.h"
#include "tensor/float_bytes.h"

namespace godwit::quant::smooth_test {
namespace {

TEST(SmoothingFactor, ByHand) {
  EXPECT_FLOAT_EQ(SmoothingFactor(16, 4, 0.5f), 2);   // 4 / 2
  EXPECT_FLOAT_EQ(SmoothingFactor(16, 4, 1), 16);     // all into the weights
  EXPECT_FLOAT_EQ(SmoothingFactor(16, 4, 0), 0.25f);  // all into the activations
  EXPECT_FLOAT_EQ(SmoothingFactor(16, 4, 0.75f), 8 / std::sqrt(2.0f));
  EXPECT_FLOAT_EQ(SmoothingFactor(1e-12f, 1e4f, 0.5f), 1e-5f);  // 1e-8
}

TEST(SmoothingFactor, SilentAndUnreadChannelsStay) {
  for (const float alpha : {0.0f, 0.5f, 1.0f}) {
    EXPECT_EQ(SmoothingFactor(0, 3, alpha), 1);
    EXPECT_EQ(SmoothingFactor(3, 0, alpha), 1);
    EXPECT_EQ(SmoothingFactor(0, 0, alpha), 1);
  }
}

// One layer of a Llama whose linear layers all saw the same inputs: |x| up to 9 in each channel.
class SmoothTest : public testing::Test {
 protected:
  static DecoderSpec OneLayer() {
    DecoderSpec spec = SmallLlama();
    spec.layers = 1;
    return spec;
  }
  explicit SmoothTest(DType dtype = DType::kF32) : model_(OneLayer(), dtype) {}

  Calibration Seen(float largest = 9) const {
    Calibration calibration;
    ForEachLinear(model_.tensors.layers[0], [&](const LinearTensors& linear) {
      const auto inputs = static_cast<size_t>(linear.parts[0]->shape[1]);
      LinearStatistics& seen = calibration[ModuleName(linear)];
      seen.largest.assign(inputs, largest);
      for (int64_t row = 0; row < 40; ++row) {
        std::vector<float> values;
        for (size_t i = 0; i < inputs; ++i) {
          values.push_back(largest * static_cast<float>(2 * Uniform(5, i, row, 0) - 1));
        }
        if (seen.sample.WantsNext()) seen.sample.Add(values);
      }
    });
    return calibration;
  }

  void Fill(const std::string& name, float value) {
    const TensorInfo& tensor = *model_.weights.Find(name);
    for (int64_t i = 0; i < tensor.NumElements(); ++i) model_.weights.Set(name, i, value);
  }

  Smoothing Run(SmoothKind kind, const Calibration& calibration, const SmoothOptions& options = {},
                int threads = 2) {
    const auto plan = PlanQuantization(model_.spec, model_.tensors, kind, {});
    return Smooth(*TestExec(threads), plan, FindScheme("w8a8"), calibration, options, nullptr);
  }

  TestModel model_;
  const std::string layer_ = "model.layers.0.";
};

class SmoothBf16Test : public SmoothTest {
 protected:
  SmoothBf16Test() : SmoothTest(DType::kBF16) {}
};

TEST_F(SmoothTest, TheWeightsOfAGroupCountTogether) {
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    Fill(layer_ + "self_attn." + name + ".weight", 0.25f);
  }
  model_.weights.Set(layer_ + "self_attn.k_proj.weight", 16 + 3, -4);  // row 1, column 3
  for (int64_t row = 0; row < 16; ++row) {                             // no layer reads channel 5
    model_.weights.Set(layer_ + "self_attn.q_proj.weight", row * 16 + 5, 0);
    if (row >= 8) continue;
    model_.weights.Set(layer_ + "self_attn.k_proj.weight", row * 16 + 5, 0);
    model_.weights.Set(layer_ + "self_attn.v_proj.weight", row * 16 + 5, 0);
  }
  Calibration seen = Seen();
  seen.at(layer_ + "self_attn.q_proj").largest[7] = 0;  // silent
  const Smoothing result = Run(SmoothKind::kNorm, seen);

  std::vector<float> expected(16, 6);  // 3 / 0.5
  expected[3] = 1.5f;
  expected[5] = expected[7] = 1;
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    const Scaling& scaling = result.scalings.at(layer_ + "self_attn." + name + ".weight");
    EXPECT_THAT(scaling.column_factors, testing::Pointwise(testing::FloatEq(), expected));
    EXPECT_TRUE(scaling.row_divisors.empty());
  }
  EXPECT_THAT(result.scalings.at(layer_ + "input_layernorm.weight").row_divisors,
              testing::Pointwise(testing::FloatEq(), expected));
  EXPECT_EQ(result.alphas, std::vector<float>(2, 0.5f));
  EXPECT_TRUE(result.curve.empty());
}

// The rows of v are divided first, and its columns are then measured after that.
TEST_F(SmoothTest, RowsAreSettledBeforeColumns) {
  Fill(layer_ + "self_attn.o_proj.weight", 0.25f);
  for (const char* name : {"q_proj", "k_proj"}) {
    Fill(layer_ + "self_attn." + name + ".weight", 1);
  }
  Fill(layer_ + "self_attn.v_proj.weight", 24);
  const Smoothing result = Run(SmoothKind::kAll, Seen());
  const Scaling& v = result.scalings.at(layer_ + "self_attn.v_proj.weight");
  EXPECT_THAT(v.row_divisors, testing::Each(testing::FloatEq(6)));       // 3 / 0.5
  EXPECT_THAT(v.column_factors, testing::Each(testing::FloatEq(1.5f)));  // 3 / sqrt(24 / 6)
  EXPECT_EQ(result.scalings.at(layer_ + "self_attn.v_proj.bias").row_divisors, v.row_divisors);
}

// A gain divided by its factor and rounded to bf16 gives the old gain when multiplied by the
// factor.
TEST_F(SmoothBf16Test, GainsAreDividedExactly) {
  const std::string name = layer_ + "input_layernorm.weight";
  model_.weights.Set(name, 2, 0);
  const Smoothing result = Run(SmoothKind::kNorm, Seen());
  const TensorInfo& gain = *model_.weights.Find(name);
  const Scaling& scaling = result.scalings.at(name);
  std::vector<float> before(16), after(16);
  ReadFloats(DType::kBF16, gain.bytes.data(), before);
  ReadFloats(DType::kBF16, ScaledBytes(WholeTensor(gain), scaling).data(), after);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_FLOAT_EQ(after[i] * scaling.row_divisors[i], before[i]);
    EXPECT_TRUE(before[i] == 0 || before[i] != after[i]);
  }
}

// Outlier Suppression, section 4.1: LN(x) = gain * LN'(x). The norm keeps 1 and bias / gain. The
// weights that read it take the gain, whatever the calibration saw.
TEST_F(SmoothBf16Test, GainsMoveIntoTheWeights) {
  const std::string name = layer_ + "input_layernorm.weight";
  model_.weights.Set(name, 2, 0);
  model_.weights.Set(name, 3, -1.5f);
  const auto plan = PlanQuantization(model_.spec, model_.tensors, SmoothKind::kNorm, {});
  const Smoothing result =
      Smooth(*TestExec(), plan, FindScheme("outlier-suppression"), Seen(), {}, nullptr);
  const TensorInfo& gain = *model_.weights.Find(name);
  std::vector<float> before(16), after(16), row(16), weights(16);
  ReadFloats(DType::kBF16, gain.bytes.data(), before);
  ReadFloats(DType::kBF16, ScaledBytes(WholeTensor(gain), result.scalings.at(name)).data(), after);
  const std::string q = layer_ + "self_attn.q_proj.weight";
  const MatrixPart part = WholeTensor(*model_.weights.Find(q));
  ReadRow(part, {}, 1, weights);
  ReadRow(part, result.scalings.at(q), 1, row);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(after[i], i == 2 ? 0 : 1);
    EXPECT_EQ(row[i], i == 2 ? weights[i] : weights[i] * before[i]);
  }
  EXPECT_EQ(before[3], -1.5f);
  EXPECT_FALSE(result.scalings.contains(layer_ + "mlp.down_proj.weight"));
}

TEST_F(SmoothTest, ASearchFindsTheLeastError) {
  // An outlier in one channel of the activations, part of which must move into the weights.
  Calibration seen = Seen();
  for (auto& [name, statistics] : seen) {
    RowSample sample;
    for (int64_t row = 0; row < 40; ++row) {
      auto values = statistics.sample.rows().RowSpan(row);
      std::vector<float> outlying(values.begin(), values.end());
      outlying[1] *= 100;
      sample.Add(outlying);
    }
    statistics.sample = sample;
    statistics.largest[1] *= 100;
  }
  const Smoothing global = Run(SmoothKind::kNorm, seen, {.search = AlphaSearch::kGlobal});
  ASSERT_EQ(global.curve.size(), AlphaGrid().size());
  EXPECT_EQ(global.alphas[0], global.alphas[1]);
  const auto least = std::ranges::min_element(global.curve) - global.curve.begin();
  EXPECT_EQ(global.alphas[0], AlphaGrid()[least]);
  EXPECT_LT(global.curve[least], 0.5 * global.curve.front());
  EXPECT_LT(global.curve[least], 0.5 * global.curve.back());
  // The chosen alpha gives the same result by itself.
  const Smoothing fixed = Run(SmoothKind::kNorm, seen, {.alpha = global.alphas[0]});
  const std::string norm = layer_ + "input_layernorm.weight";
  EXPECT_EQ(fixed.scalings.at(norm).row_divisors, global.scalings.at(norm).row_divisors);

  const Smoothing each = Run(SmoothKind::kNorm, seen, {.search = AlphaSearch::kPerGroup});
  EXPECT_EQ(each.curve, global.curve);
  EXPECT_EQ(each.alphas.size(), 2);
}

TEST_F(SmoothTest, SameBitsWhateverTheThreads) {
  const SmoothOptions search{.search = AlphaSearch::kPerGroup};
  const Smoothing one = Run(SmoothKind::kAll, Seen(), search, 1);
  const Smoothing three = Run(SmoothKind::kAll, Seen(), search, 3);
  EXPECT_EQ(one.curve, three.curve);
  EXPECT_EQ(one.alphas, three.alphas);
  for (const auto& [name, scaling] : one.scalings) {
    EXPECT_EQ(scaling.row_divisors, three.scalings.at(name).row_divisors);
    EXPECT_EQ(scaling.column_factors, three.scalings.at(name).column_factors);
  }
}

}  // namespace
}  // namespace godwit::quant::smooth_test
