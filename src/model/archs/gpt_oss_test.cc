#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::gpt_oss_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec GptOss(const std::string& fields = "") { return SmallSpecOf("gpt_oss", fields); }

TEST(GptOssTest, ASilentConfig) {
  const DecoderSpec spec = GptOss();
  EXPECT_EQ(spec.head_dim, 64);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(128, 0));
  EXPECT_EQ(spec.attention_sink, AttentionSink::kLearned);
  EXPECT_TRUE(spec.qkv_bias && spec.attention_out_bias && spec.mlp.bias && spec.mlp.router_bias);
  EXPECT_EQ(spec.mlp.experts, 128);
  EXPECT_EQ(spec.mlp.experts_per_token, 4);
  ASSERT_TRUE(spec.mlp.clamped);
  EXPECT_EQ(spec.mlp.clamped->alpha, 1.702f);
  EXPECT_EQ(spec.mlp.clamped->limit, 7.0f);
  EXPECT_EQ(spec.rotary.theta, 150000);
  EXPECT_EQ(spec.rotary.scaling.kind, RotaryScaling::Kind::kYarn);
  EXPECT_EQ(spec.rotary.scaling.factor, 32);
  EXPECT_FALSE(spec.rotary.scaling.truncate);
  EXPECT_EQ(spec.rotary.scaling.original_context, 4096);
  EXPECT_EQ(spec.max_context, 64);
}

TEST(GptOssTest, ReadsWhatItStates) {
  const DecoderSpec spec =
      GptOss(R"("swiglu_limit":2.5,"swiglu_alpha":1.5,"sliding_window":9,"attention_bias":false,)"
             R"("layer_types":["full_attention","sliding_attention"],"rope_theta":70,)"
             R"("rope_scaling":{"rope_type":"yarn","factor":4,"truncate":false,)"
             R"("original_max_position_embeddings":16})");
  EXPECT_EQ(spec.mlp.clamped->limit, 2.5f);
  EXPECT_EQ(spec.mlp.clamped->alpha, 1.5f);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(0, 9));
  EXPECT_FALSE(spec.qkv_bias || spec.attention_out_bias);
  EXPECT_TRUE(spec.mlp.bias);
  EXPECT_EQ(spec.rotary.theta, 70);
  EXPECT_EQ(spec.rotary.scaling.factor, 4);
  EXPECT_EQ(GptOss(R"("rope_theta":70)").rotary.theta, 70);
  for (const char* fields : {R"("swiglu_limit":0)", R"("swiglu_alpha":-1)",
                             R"("num_local_experts":3)", R"("swiglu_limit":"7")"}) {
    EXPECT_EQ(ErrorOf([&] { GptOss(fields); }).kind(), ErrorKind::kFormat) << fields;
  }
}

class StackedExpertsTest : public testing::Test {
 protected:
  StackedExpertsTest() {
    for (const WantedTensor& tensor : WantedTensors(spec_)) {
      weights_.Add(tensor.name, DType::kF32, tensor.shape);
    }
  }

  const DecoderSpec spec_ = GptOss(R"("num_local_experts":5)");
  FakeWeights weights_;
};

TEST_F(StackedExpertsTest, EachIsASliceOfOneTensor) {
  const ModelTensors tensors = ResolveTensors(spec_, weights_);
  const std::string module = "model.layers.1.mlp.experts.gate_up_proj";
  const TensorInfo& whole = *weights_.Find(module);
  EXPECT_THAT(whole.shape, ElementsAre(5, 16, 20));
  ASSERT_EQ(tensors.layers[1].experts.size(), 5u);
  const LinearTensors& up = tensors.layers[1].experts[3].up;
  EXPECT_EQ(up.parts[0]->name, module + ".3");
  EXPECT_THAT(up.parts[0]->shape, ElementsAre(16, 20));
  EXPECT_EQ(up.parts[0]->bytes.data(), whole.bytes.data() + 3 * 16 * 20 * 4);
  EXPECT_EQ(up.parts[0]->bytes.size(), 16u * 20 * 4);
  EXPECT_EQ(up.parts[0]->offset_bytes, whole.offset_bytes + 3 * 16 * 20 * 4);
  EXPECT_EQ(up.inputs(), 16);
  EXPECT_EQ(up.OutputsOf(*up.parts[0]), 20);
  EXPECT_EQ(up.biases[0]->name, module + ".3_bias");
  EXPECT_THAT(up.biases[0]->shape, ElementsAre(20));
  int64_t bytes = 0;
  for (const std::string& name : weights_.Names()) {
    bytes += std::ssize(weights_.Find(name)->bytes);
  }
  EXPECT_EQ(tensors.bytes, bytes);
  EXPECT_EQ(CountTensors(spec_).tensors, std::ssize(weights_.Names()));
}

TEST_F(StackedExpertsTest, EachProblemIsReportedOnce) {
  weights_.Add("model.layers.0.mlp.experts.down_proj", DType::kF32, {4, 10, 16});
  weights_.Add("model.layers.1.mlp.experts.gate_up_proj_bias", DType::kF32, {100});
  const std::string message = ErrorOf(ErrorKind::kFormat, [&] { ResolveTensors(spec_, weights_); });
  EXPECT_THAT(message, HasSubstr(": 2 problems"));
  EXPECT_THAT(message, HasSubstr("tensor model.layers.0.mlp.experts.down_proj has shape "
                                 "[4, 10, 16], expected [5, 10, 16]"));
  EXPECT_THAT(message, HasSubstr("gate_up_proj_bias has shape [100], expected [5, 20]"));
}

}  // namespace
}  // namespace godwit::gpt_oss_test
