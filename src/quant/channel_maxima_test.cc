#include "quant/channel_maxima.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "quant/quant_test_support.h"

namespace godwit::quant::channel_maxima_test {
namespace {

const std::string kAttention = "model.layers.0.self_attn.";

class ChannelMaximaTest : public testing::Test {
 protected:
  ChannelMaximaTest() {
    for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
      const std::string name = kAttention + part + ".weight";
      for (int64_t i = 0; i < model_.weights.Find(name)->NumElements(); ++i) {
        model_.weights.Set(name, i, 0.5f);
      }
    }
    model_.weights.Set(kAttention + "q_proj.weight", 16 * 2 + 3, -4);  // row 2, column 3
    model_.weights.Set(kAttention + "v_proj.weight", 16 * 1 + 5, 3);
  }

  TestModel model_;
  const LinearTensors& qkv_ = model_.tensors.layers[0].qkv;
};

TEST_F(ChannelMaximaTest, WeightMaximaCoverAllPartsAndRows) {
  std::vector<float> expected(16, 0.5f);
  expected[3] = 4;
  expected[5] = 3;
  for (const int threads : {1, 3}) {
    EXPECT_EQ(LargestWeights(*TestExec(threads), qkv_, {}), expected);
  }
}

TEST_F(ChannelMaximaTest, WeightMaximaFollowTheScaling) {
  Scaling columns{.column_factors = std::vector<float>(16, 1)};
  columns.column_factors[3] = 0.25f;
  columns.column_factors[9] = 8;
  Scaling v = columns;
  v.row_divisors.assign(8, 2);
  std::vector<float> expected(16, 0.5f);
  expected[3] = 1;
  expected[5] = 1.5f;
  expected[9] = 4;
  EXPECT_EQ(LargestWeights(*TestExec(), qkv_,
                           {{kAttention + "q_proj.weight", columns},
                            {kAttention + "k_proj.weight", columns},
                            {kAttention + "v_proj.weight", v}}),
            expected);
}

TEST_F(ChannelMaximaTest, WeightsThatAreNotFiniteAreRefusedByName) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    model_.weights.Set(kAttention + "k_proj.weight", 7, value);
    EXPECT_EQ(ErrorOf(ErrorKind::kUnsupported, [&] { LargestWeights(*TestExec(), qkv_, {}); }),
              "tensor " + kAttention + "k_proj.weight holds NaN or infinity");
  }
}

TEST_F(ChannelMaximaTest, InputMaximaAreDividedByTheFactors) {
  Calibration calibration;
  calibration[kAttention + "q_proj"].largest.assign(16, 6);
  EXPECT_EQ(LargestInputs(qkv_, calibration, {}), std::vector<float>(16, 6));
  Scaling columns{.column_factors = std::vector<float>(16, 1)};
  columns.column_factors[3] = 4;
  std::vector<float> expected(16, 6);
  expected[3] = 1.5f;
  EXPECT_EQ(LargestInputs(qkv_, calibration, {{kAttention + "q_proj.weight", columns}}), expected);
  EXPECT_TRUE(LargestInputs(model_.tensors.layers[1].qkv, calibration, {}).empty());
}

}  // namespace
}  // namespace godwit::quant::channel_maxima_test
