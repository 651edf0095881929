#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/test_support.h"
#include "model/archs/families.h"

namespace godwit::falcon_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DecoderSpec Falcon(const std::string& fields = "", int heads = 4) {
  return DescribeFalcon(
      HfConfig::Parse(fmt::format(R"({{"model_type":"falcon","vocab_size":11,"hidden_size":{},)"
                                  R"("num_hidden_layers":2,"num_attention_heads":{}{}{}}})",
                                  heads * 4, heads, fields.empty() ? "" : ",", fields),
                      "config.json"));
}

std::string Refusal(const std::string& fields) {
  return ErrorOf(ErrorKind::kFormat, [&] { Falcon(fields); });
}

// The defaults of transformers' configuration class are Falcon 7B's.
TEST(FalconTest, ASilentConfig) {
  const DecoderSpec spec = Falcon();
  EXPECT_EQ(spec.kv_heads, 1);
  EXPECT_EQ(spec.topology, Topology::kParallelSharedNorm);
  EXPECT_EQ(spec.mlp.intermediate, 64);
  EXPECT_EQ(spec.mlp.activation, ops::Activation::kGeluErf);
  EXPECT_EQ(spec.max_context, 2048);
  EXPECT_EQ(spec.rotary.rotary_dim, 4);
  EXPECT_THAT(spec.alibi.slopes, IsEmpty());
  EXPECT_TRUE(spec.tied_head);
  EXPECT_FALSE(spec.qkv_bias || spec.attention_out_bias || spec.mlp.bias);
}

TEST(FalconTest, EveryLayoutOfBlocks) {
  EXPECT_EQ(Falcon(R"("parallel_attn":false)").topology, Topology::kSequential);
  const DecoderSpec two = Falcon(R"("new_decoder_architecture":true,"num_kv_heads":2)");
  EXPECT_EQ(two.topology, Topology::kParallel);
  EXPECT_EQ(two.kv_heads, 2);
  EXPECT_EQ(two.names.mlp_norm, "transformer.h.{}.ln_mlp");
  const DecoderSpec one =
      Falcon(R"("new_decoder_architecture":true,"num_ln_in_parallel_attn":1,"multi_query":true)");
  EXPECT_EQ(one.topology, Topology::kParallelSharedNorm);
  EXPECT_EQ(one.kv_heads, 4);
  EXPECT_EQ(one.names.attention_norm, "transformer.h.{}.input_layernorm");
  EXPECT_EQ(Falcon(R"("multi_query":false)").kv_heads, 4);
  EXPECT_EQ(Falcon(R"("num_kv_heads":4)").kv_heads, 1) << "multi_query counts";
}

TEST(FalconTest, RefusesWhatItsOwnCodeCannotRun) {
  EXPECT_THAT(Refusal(R"("new_decoder_architecture":true,"parallel_attn":false)"),
              HasSubstr("parallel_attn: expected true"));
  EXPECT_THAT(Refusal(R"("num_ln_in_parallel_attn":2)"), HasSubstr("num_ln_in_parallel_attn"));
  EXPECT_THAT(Refusal(R"("num_ln_in_parallel_attn":3)"), HasSubstr("num_ln_in_parallel_attn"));
  EXPECT_THAT(Refusal(R"("multi_query":false,"num_kv_heads":2)"), HasSubstr("num_kv_heads"));
  EXPECT_THAT(Refusal(R"("ffn_hidden_size":0)"), HasSubstr("ffn_hidden_size"));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Falcon(R"("activation":"mish")"); }),
              HasSubstr("activation: expected silu"));
  EXPECT_THAT(Refusal(R"("layer_norm_epsilon":2)"), HasSubstr("layer_norm_epsilon"));
}

TEST(FalconTest, AlibiTakesTheSlopesOfPowersOfTwo) {
  const DecoderSpec four = Falcon(R"("alibi":true)");
  EXPECT_THAT(four.alibi.slopes, ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f));
  EXPECT_TRUE(four.alibi.in_bf16);
  EXPECT_EQ(four.alibi.scale, 0.5f);
  EXPECT_EQ(four.rotary.rotary_dim, 0);
  // The slopes of four heads, then the odd slopes of eight.
  EXPECT_THAT(Falcon(R"("alibi":true)", 6).alibi.slopes,
              ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f));
  EXPECT_EQ(Falcon(R"("alibi":true)", 32).alibi.slopes[0],
            static_cast<float>(std::pow(2.0, -0.25)));
}

// RefinedWeb's own code has other names and other defaults.
TEST(FalconTest, TheFirstCheckpoints) {
  const auto config = [](const std::string& fields) {
    return HfConfig::Parse(
        R"({"model_type":"RW","vocab_size":11,"hidden_size":16,"n_layer":2,"n_head":4,)" + fields +
            "}",
        "config.json");
  };
  const DecoderSpec seven =
      DescribeRefinedWebModel(config(R"("multi_query":true,"parallel_attn":true)"));
  EXPECT_EQ(seven.topology, Topology::kParallelSharedNorm);
  EXPECT_EQ(seven.kv_heads, 1);
  const DecoderSpec rw = DescribeRefinedWebModel(config(R"("alibi":true,"bias":true)"));
  EXPECT_EQ(rw.topology, Topology::kSequential);
  EXPECT_EQ(rw.kv_heads, 4);
  EXPECT_TRUE(rw.qkv_bias && rw.attention_out_bias && rw.mlp.bias);
  const DecoderSpec forty = DescribeRefinedWeb(config(R"("n_head_kv":2,"parallel_attn":true)"));
  EXPECT_EQ(forty.topology, Topology::kParallel);
  EXPECT_EQ(forty.kv_heads, 2);
}

}  // namespace
}  // namespace godwit::falcon_test
