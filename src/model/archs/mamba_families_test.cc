// The facts of Bamba, Falcon-H1 and Nemotron-H that other families lack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "model/model_test_support.h"

namespace godwit::mamba_families_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kAlone = static_cast<int>(Mixer::kNone);
constexpr int kAttention = static_cast<int>(Mixer::kAttention);
constexpr int kMamba = static_cast<int>(Mixer::kMamba2);

std::vector<int64_t> Mixers(const DecoderSpec& spec) {
  return OfEachLayer(spec, [](const LayerKind& kind) { return static_cast<int64_t>(kind.mixer); });
}

std::string Fields(const std::string& more) {
  return R"("mamba_n_heads":8)" + (more.empty() ? "" : "," + more);
}
DecoderSpec Bamba(const std::string& fields = "") { return SmallSpecOf("bamba", Fields(fields)); }
DecoderSpec Falcon(const std::string& fields = "") {
  return SmallSpecOf("falcon_h1",
                     Fields(R"("mamba_d_ssm":24)" + (fields.empty() ? "" : "," + fields)));
}
DecoderSpec Nemotron(const std::string& fields) {
  return DescribeModel(HfConfig::Parse(
      R"({"model_type":"nemotron_h","vocab_size":11,"hidden_size":16,"num_attention_heads":4,)"
      R"("max_position_embeddings":64,"mamba_num_heads":8)" +
          (fields.empty() ? "" : "," + fields) + "}",
      "config.json"));
}

TEST(BambaTest, LayersThatAreNotListedAreRecurrent) {
  const DecoderSpec spec = Bamba(R"("attn_layer_indices":[1])");
  EXPECT_THAT(Mixers(spec), ElementsAre(kMamba, kAttention));
  EXPECT_EQ(spec.mamba.shape,
            (ops::MatrixStateShape{
                .key_heads = 1, .value_heads = 8, .key_dim = 256, .value_dim = 4, .taps = 4}));
  EXPECT_EQ(spec.rotary.rotary_dim, 2) << "half of 4";
  EXPECT_TRUE(spec.mamba.convolution_bias);
  EXPECT_FALSE(spec.mamba.in_bias || spec.mamba.out_bias || spec.qkv_bias || spec.mlp.bias);
  EXPECT_EQ(spec.mamba.norm, Mamba2Norm::kBehindGate);
  EXPECT_EQ(spec.mamba.steps, ops::StepRange{});
  EXPECT_THAT(Mixers(Bamba()), ElementsAre(kMamba, kMamba));
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));
}

TEST(BambaTest, SizesThatDoNotFitAreRefused) {
  const auto refusal = [](const std::string& fields, ErrorKind kind = ErrorKind::kFormat) {
    return ErrorOf(kind, [&] { Bamba(fields); });
  };
  EXPECT_EQ(Bamba(R"("mamba_d_head":"auto")").mamba.shape.value_dim, 4);
  EXPECT_EQ(Bamba(R"("mamba_d_head":4)").mamba.shape.value_dim, 4);
  EXPECT_THAT(refusal(R"("mamba_d_head":5)"),
              HasSubstr("mamba_d_head: expected 4, as 8 heads of 32 numbers have, found 5"));
  EXPECT_THAT(refusal(R"("mamba_n_heads":5)"), HasSubstr("mamba_n_heads"));
  EXPECT_THAT(refusal(R"("mamba_n_groups":3)"),
              HasSubstr("mamba_n_groups: expected a divisor of 8 heads, found 3"));
  EXPECT_THAT(refusal(R"("mamba_d_conv":66)"), HasSubstr("mamba_d_conv"));
  EXPECT_THAT(refusal(R"("mamba_d_state":0)"), HasSubstr("mamba_d_state"));
  EXPECT_THAT(refusal(R"("attn_layer_indices":[2])"), HasSubstr("attn_layer_indices"));
  EXPECT_THAT(refusal(R"("hidden_act":"gelu")", ErrorKind::kUnsupported),
              HasSubstr("hidden_act: expected silu, which convolutions of recurrent layers have"));
  EXPECT_THAT(refusal(R"("partial_rotary_factor":1)", ErrorKind::kUnsupported),
              HasSubstr("partial_rotary_factor: expected 0.5"));
}

TEST(BambaTest, StepsHaveALeastAndAGreatest) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const auto steps = [](const std::string& limit) {
    return Bamba(R"("time_step_limit":)" + limit).mamba.steps;
  };
  EXPECT_EQ(steps("[0.5,2]"), (ops::StepRange{.min = 0.5f, .max = 2}));
  EXPECT_EQ(steps("[0.5,Infinity]"), (ops::StepRange{.min = 0.5f, .max = kInfinite}));
  EXPECT_EQ(steps(R"([0,{"__float__":"Infinity"}])"), ops::StepRange{});
  EXPECT_EQ(steps("null"), ops::StepRange{});
  for (const char* limit : {"[1]", "[2,1]", "[0,1,2]", "[-1,1]", R"(["Infinity",1])", "3"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { steps(limit); }), HasSubstr("time_step_limit"))
        << limit;
  }
}

TEST(FalconH1Test, AttentionStandsBesideMamba) {
  const DecoderSpec spec = Falcon(R"("mamba_n_groups":2,"mamba_d_state":5)");
  EXPECT_THAT(Mixers(spec), ElementsAre(kMamba, kMamba));
  EXPECT_TRUE(HasAttention(spec) && IsRecurrent(spec));
  EXPECT_EQ(AttentionLayers(spec), 2);
  EXPECT_EQ(Geometry(spec).layers, 2);
  EXPECT_EQ(Geometry(spec).states.layers, 2);
  EXPECT_EQ(spec.mamba.shape.value_dim, 3);
  EXPECT_EQ(spec.mamba.norm, Mamba2Norm::kNone);
  EXPECT_EQ(Falcon(R"("mamba_rms_norm":true)").mamba.norm, Mamba2Norm::kBeforeGate);
  EXPECT_EQ(Falcon(R"("mamba_rms_norm":true,"mamba_norm_before_gate":false)").mamba.norm,
            Mamba2Norm::kBehindGate);
  EXPECT_EQ(SmallSpecOf("falcon_h1", Fields(R"("mamba_d_ssm":null)")).mamba.shape.value_dim, 4)
      << "of 2 * 16 numbers";
  EXPECT_EQ(SmallSpecOf("falcon_h1", Fields("")).mamba.shape.value_dim, 128) << "of 1024 numbers";
}

TEST(FalconH1Test, Factors) {
  const DecoderSpec spec =
      Falcon(R"("attention_in_multiplier":2,"attention_out_multiplier":0.25,"key_multiplier":3,)"
             R"("embedding_multiplier":4,"lm_head_multiplier":5,"mlp_multipliers":[6,7],)"
             R"("ssm_in_multiplier":2,"ssm_multipliers":[1,2,3,4,5],"ssm_out_multiplier":8)");
  EXPECT_EQ(spec.score_scale, 3 * 2 * 2 / 2.0f);
  EXPECT_EQ(spec.attention_scale, 0.5f);
  EXPECT_EQ(spec.embedding_scale, 4);
  EXPECT_EQ(spec.logit_scale, 5);
  EXPECT_EQ(spec.mlp.gate_scale, 6);
  EXPECT_EQ(spec.mlp.out_scale, 7);
  EXPECT_THAT(spec.mamba.in_scales, ElementsAre(2, 4, 6, 8, 10));
  EXPECT_EQ(spec.mamba.out_scale, 8);
  const DecoderSpec silent = Falcon();
  EXPECT_EQ(silent.score_scale, 0.5f);
  EXPECT_EQ(silent.attention_scale, 1);
  EXPECT_EQ(silent.mamba, Falcon(R"("ssm_multipliers":null)").mamba);
  const auto refusal = [](const std::string& fields, ErrorKind kind = ErrorKind::kFormat) {
    return ErrorOf(kind, [&] { Falcon(fields); });
  };
  EXPECT_THAT(refusal(R"("ssm_multipliers":[1,2])"),
              HasSubstr("ssm_multipliers: expected 5 factors"));
  EXPECT_THAT(refusal(R"("mlp_multipliers":[1,0])"), HasSubstr("mlp_multipliers[1]"));
  EXPECT_THAT(
      refusal(R"("attention_bias":true,"attention_in_multiplier":2)", ErrorKind::kUnsupported),
      HasSubstr("attention_in_multiplier: expected 1 where the projection behind it has a bias"));
  EXPECT_THAT(refusal(R"("mamba_proj_bias":true,"ssm_in_multiplier":2)", ErrorKind::kUnsupported),
              HasSubstr("ssm_in_multiplier: expected 1"));
}

TEST(NemotronHTest, EachLayerIsOneBlock) {
  const DecoderSpec spec = Nemotron(R"("hybrid_override_pattern":"M*-E","intermediate_size":20)");
  EXPECT_EQ(spec.layers, 4);
  EXPECT_THAT(Mixers(spec), ElementsAre(kMamba, kAttention, kAlone, kAlone));
  EXPECT_THAT(ExpertsOf(spec), ElementsAre(0, 0, 0, 8));
  const auto widths = [](const LayerKind& kind) { return kind.mlp.intermediate; };
  EXPECT_THAT(OfEachLayer(spec, widths), ElementsAre(0, 0, 20, 7688));
  EXPECT_EQ(KindOf(spec, 2).mlp.activation, ops::Activation::kSquaredRelu);
  EXPECT_FALSE(KindOf(spec, 2).mlp.gated || spec.mlp.gated || spec.shared_mlp.gated);
  EXPECT_EQ(spec.mlp.choice.score, ops::ExpertScore::kSigmoid);
  EXPECT_EQ(spec.rotary.rotary_dim, 0);
  EXPECT_EQ(spec.mamba.shape.key_heads, 8);
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));
  for (const char* fields :
       {R"("layers_block_type":["mamba","attention","mlp","moe"])",
        R"("layer_types":["linear_attention","full_attention","mlp","moe"])"}) {
    EXPECT_EQ(Mixers(Nemotron(fields)), Mixers(spec)) << fields;
  }
  EXPECT_EQ(spec.head_dim, 128);
  EXPECT_EQ(Nemotron(R"("attention_head_dim":32)").head_dim, 32);
  EXPECT_EQ(Nemotron(R"("attention_head_dim":32,"head_dim":16)").head_dim, 16);
  const DecoderSpec dense = Nemotron(R"("hybrid_override_pattern":"M-","intermediate_size":20)");
  EXPECT_EQ(dense.mlp.intermediate, 20);
  EXPECT_EQ(dense.mlp.experts, 0);
}

TEST(NemotronHTest, ExpertsMayReadALatentVector) {
  const std::string fields =
      R"("hybrid_override_pattern":"ME-","intermediate_size":20,"moe_intermediate_size":5,)"
      R"("moe_shared_expert_intermediate_size":9)";
  EXPECT_EQ(Nemotron(fields).mlp.latent, 0);
  const DecoderSpec spec = Nemotron(fields + R"(,"moe_latent_size":6)");
  EXPECT_THAT(OfEachLayer(spec, [](const LayerKind& kind) { return kind.mlp.latent; }),
              ElementsAre(0, 6, 0));
  EXPECT_EQ(spec.shared_mlp.latent, 0);
  const auto shape = [&](const std::string& name) {
    for (const WantedTensor& tensor : WantedTensors(spec)) {
      if (tensor.name == "model.layers.1.mixer." + name) return tensor.shape;
    }
    return std::vector<int64_t>();
  };
  EXPECT_THAT(shape("fc1_latent_proj.weight"), ElementsAre(6, 16));
  EXPECT_THAT(shape("fc2_latent_proj.weight"), ElementsAre(16, 6));
  EXPECT_THAT(shape("experts.7.up_proj.weight"), ElementsAre(5, 6));
  EXPECT_THAT(shape("experts.7.down_proj.weight"), ElementsAre(6, 5));
  EXPECT_THAT(shape("shared_experts.up_proj.weight"), ElementsAre(9, 16));
  EXPECT_THAT(shape("gate.weight"), ElementsAre(8, 16));
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));
}

TEST(NemotronHTest, WhatIsNotSupportedIsRefused) {
  const auto refusal = [](const std::string& fields, ErrorKind kind = ErrorKind::kUnsupported) {
    return ErrorOf(kind, [&] { Nemotron(fields); });
  };
  EXPECT_THAT(refusal(R"("hybrid_override_pattern":"MX")"),
              HasSubstr("hybrid_override_pattern: expected letters M, *, - and E"));
  EXPECT_THAT(refusal(R"("layers_block_type":["mamba","mamba1"])"),
              HasSubstr("layers_block_type: expected mamba, attention, mlp or moe"));
  EXPECT_THAT(refusal(R"("hybrid_override_pattern":"ME","moe_latent_size":4,"mlp_bias":true)"),
              HasSubstr("mlp_bias: expected false beside moe_latent_size"));
  EXPECT_THAT(refusal(R"("hybrid_override_pattern":"ME","n_shared_experts":2)"),
              HasSubstr("n_shared_experts: expected 1, found 2"));
  EXPECT_THAT(refusal(R"("mamba_hidden_act":"gelu")"), HasSubstr("mamba_hidden_act"));
  EXPECT_THAT(
      refusal(R"("hybrid_override_pattern":"M*","num_hidden_layers":3)", ErrorKind::kFormat),
      HasSubstr("num_hidden_layers: expected 2, as many as are listed, found 3"));
  EXPECT_THAT(refusal(R"("hybrid_override_pattern":"")", ErrorKind::kFormat),
              HasSubstr("hybrid_override_pattern: expected a letter for each layer"));
}

}  // namespace
}  // namespace godwit::mamba_families_test
