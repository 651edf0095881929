#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::granite_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GraniteTest, Factors) {
  const DecoderSpec spec =
      SmallSpecOf("granite", R"("embedding_multiplier":12,"residual_multiplier":0.25,)"
                             R"("attention_multiplier":0.5,"logits_scaling":8)");
  EXPECT_EQ(spec.embedding_scale, 12);
  EXPECT_EQ(spec.residual_scale, 0.25f);
  EXPECT_EQ(spec.logit_scale, 0.125f);
  EXPECT_EQ(Geometry(spec).shape.scale, 0.5f);
  const DecoderSpec silent = SmallSpecOf("granite");
  EXPECT_EQ(silent.embedding_scale, 1);
  EXPECT_EQ(silent.residual_scale, 1);
  EXPECT_EQ(silent.logit_scale, 1);
  EXPECT_EQ(Geometry(silent).shape.scale, 1) << "as transformers has it";
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { SmallSpecOf("granite", R"("logits_scaling":0)"); }),
              HasSubstr("logits_scaling"));
}

TEST(GraniteMoeTest, ExpertsOfALayerAreOneTensor) {
  const std::string experts = R"("num_local_experts":5,"num_experts_per_tok":3,"logits_scaling":8)";
  const DecoderSpec spec = SmallSpecOf("granitemoe", experts);
  EXPECT_EQ(spec.mlp.experts, 5);
  EXPECT_EQ(spec.mlp.experts_per_token, 3);
  EXPECT_EQ(spec.logit_scale, 0.125f);
  EXPECT_EQ(spec.shared_mlp.intermediate, 0);
  const auto shape_of = [](const DecoderSpec& of, const std::string& name) {
    for (const WantedTensor& tensor : WantedTensors(of)) {
      if (tensor.name == "model.layers.1." + name) return tensor.shape;
    }
    return std::vector<int64_t>();
  };
  EXPECT_THAT(shape_of(spec, "block_sparse_moe.input_linear.weight"), ElementsAre(5, 20, 16));
  EXPECT_THAT(shape_of(spec, "block_sparse_moe.output_linear.weight"), ElementsAre(5, 16, 10));
  EXPECT_THAT(shape_of(spec, "block_sparse_moe.router.layer.weight"), ElementsAre(5, 16));
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));

  const DecoderSpec shared =
      SmallSpecOf("granitemoeshared", experts + R"(,"shared_intermediate_size":7)");
  EXPECT_EQ(shared.shared_mlp.intermediate, 7);
  EXPECT_THAT(shape_of(shared, "shared_mlp.input_linear.weight"), ElementsAre(14, 16));
  EXPECT_THAT(shape_of(shared, "shared_mlp.output_linear.weight"), ElementsAre(16, 7));
  EXPECT_EQ(CountTensors(shared).tensors, std::ssize(WantedTensors(shared)));
  const DecoderSpec apart = SmallSpecOf(
      "granitemoeshared", experts + R"(,"shared_intermediate_size":7,"gate_is_apart":true)");
  const std::string expert = "block_sparse_moe.experts.4.";
  EXPECT_THAT(shape_of(apart, expert + "gate_proj.weight"), ElementsAre(10, 16));
  EXPECT_THAT(shape_of(apart, expert + "up_proj.weight"), ElementsAre(10, 16));
  EXPECT_THAT(shape_of(apart, expert + "down_proj.weight"), ElementsAre(16, 10));
  EXPECT_THAT(shape_of(apart, "shared_mlp.gate_proj.weight"), ElementsAre(7, 16));
  EXPECT_THAT(shape_of(apart, "shared_mlp.down_proj.weight"), ElementsAre(16, 7));
  EXPECT_EQ(CountTensors(apart).tensors, std::ssize(WantedTensors(apart)));
  EXPECT_EQ(SmallSpecOf("granitemoeshared").shared_mlp.intermediate, 0);
  EXPECT_EQ(SmallSpecOf("granitemoe").mlp.experts, 8);
  for (const char* fields :
       {R"("num_local_experts":2,"num_experts_per_tok":3)", R"("shared_intermediate_size":-1)"}) {
    EXPECT_EQ(ErrorOf([&] { SmallSpecOf("granitemoeshared", fields); }).kind(), ErrorKind::kFormat);
  }
}

TEST(GraniteMoeHybridTest, MambaInLayersThatAreNotCalledAttention) {
  const auto with = [](const std::string& fields) {
    return SmallSpecOf("granitemoehybrid", R"("mamba_n_heads":8,)" + fields);
  };
  const auto recurrent = [](const DecoderSpec& spec) {
    return OfEachLayer(spec, [](const LayerKind& kind) { return int64_t{IsRecurrent(kind)}; });
  };
  const std::string experts = R"("num_local_experts":3,)";
  const DecoderSpec spec = with(experts + R"("layer_types":["mamba","attention"])");
  EXPECT_THAT(recurrent(spec), ElementsAre(1, 0));
  EXPECT_EQ(spec.rotary.rotary_dim, 0) << "no positions unless told";
  EXPECT_EQ(spec.mlp.experts, 3);
  EXPECT_EQ(spec.shared_mlp.intermediate, 1024);
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));
  EXPECT_THAT(
      recurrent(with(experts + R"("layers_block_type":["full_attention","linear_attention"])")),
      ElementsAre(0, 1));
  EXPECT_THAT(recurrent(with(experts + R"("layer_types":null)")), ElementsAre(1, 1));
  const DecoderSpec dense = with(
      R"("num_local_experts":0,"shared_intermediate_size":7,"position_embedding_type":"rope")");
  EXPECT_EQ(dense.mlp.experts, 0);
  EXPECT_EQ(dense.mlp.intermediate, 7);
  EXPECT_EQ(dense.shared_mlp.intermediate, 0);
  EXPECT_EQ(dense.rotary.rotary_dim, 4);
  const auto refusal = [&](const std::string& fields, ErrorKind kind = ErrorKind::kUnsupported) {
    return ErrorOf(kind, [&] { with(experts + fields); });
  };
  EXPECT_THAT(refusal(R"("layer_types":["mamba","rwkv"])"),
              HasSubstr("layer_types: expected mamba or attention for every layer"));
  EXPECT_THAT(refusal(R"("layer_types":["mamba"])", ErrorKind::kFormat),
              HasSubstr("layer_types: expected one entry for each of 2 layers"));
  EXPECT_THAT(refusal(R"("position_embedding_type":"alibi")"),
              HasSubstr("position_embedding_type: expected rope, nope or null"));
  EXPECT_THAT(refusal(R"("normalization_function":"layernorm")"),
              HasSubstr("normalization_function"));
}

TEST(GraniteTest, OthersHaveNone) {
  EXPECT_TRUE(SmallSpecOf("llama").other_kinds.empty());
  EXPECT_EQ(SmallSpecOf("llama").residual_scale, 1);
}

}  // namespace
}  // namespace godwit::granite_test
