// Bamba, Falcon-H1 and Nemotron-H in GGUF: what their keys say, and what is refused.

#include "model/archs/mamba_gguf.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/gguf_model_test_support.h"

namespace godwit::mamba_gguf_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Three layers of two heads of 4 numbers, with Mamba2 of four heads of 4.
class File : public GgufBuilder {
 public:
  explicit File(std::string architecture) : architecture_(std::move(architecture)) {
    Text("general.architecture", architecture_);
    U32(Own("block_count"), 3).U32(Own("context_length"), 64).U32(Own("embedding_length"), 8);
    U32(Own("attention.head_count"), 2).F32(Own("attention.layer_norm_rms_epsilon"), 1e-3f);
    U32(Own("ssm.conv_kernel"), 3).U32(Own("ssm.state_size"), 5).U32(Own("ssm.group_count"), 2);
    U32(Own("ssm.time_step_rank"), 4).U32(Own("ssm.inner_size"), 16);
    AddMatrix(*this, "token_embd.weight", 5, 8);
  }

  std::string Own(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  File& Number(std::string_view key, uint32_t value) {
    U32(Own(key), value);
    return *this;
  }
  File& Numbers(std::string_view key, const std::vector<int32_t>& values) {
    List<int32_t>(Own(key), GgufType::kI32, values);
    return *this;
  }
  File& Vector(std::string_view name) {
    Tensor(name, {4}, kF32, Rows(4, 1));
    return *this;
  }

 private:
  const std::string architecture_;
};

File Hybrid(std::string architecture, const std::vector<int32_t>& kv_heads = {0, 1, 0}) {
  return File(std::move(architecture)).Numbers("attention.head_count_kv", kv_heads);
}

TEST(GgufBamba, IsAHybridThatRotatesHalfOfAHead) {
  const auto type = [](uint32_t rotated) {
    return Translated(Hybrid("granitehybrid")
                          .Number("rope.dimension_count", rotated)
                          .Number("feed_forward_length", 6))
        .config["model_type"];
  };
  EXPECT_EQ(type(2), "bamba");
  EXPECT_EQ(type(4), "granitemoehybrid");
  File file = Hybrid("granitehybrid").Number("rope.dimension_count", 2);
  file.Number("feed_forward_length", 6).Vector("blk.0.ssm_conv1d.bias");
  AddMatrix(file, "blk.1.attn_q.weight", 8, 8);
  AddMatrix(file, "blk.1.ffn_up.weight", 6, 8);
  const Translated model(file);
  EXPECT_EQ(model.config["attn_layer_indices"], json({1}));
  EXPECT_EQ(model.config["mamba_expand"], 2);
  EXPECT_EQ(model.config["mamba_conv_bias"], true);
  EXPECT_EQ(model.config["decay_rates_negated"], true);
  EXPECT_FALSE(model.config.contains("attention_multiplier"));
  EXPECT_EQ(model.Column("model.layers.1.self_attn.q_proj.weight"),
            (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}))
      << "pairs of whole heads";
  EXPECT_NE(model.model.weights->Find("model.layers.1.feed_forward.up_proj.weight"), nullptr);
}

TEST(GgufGraniteHybrid, SilenceAboutTheScaleOfScoresMeansTheUsualOne) {
  File file = Hybrid("granitehybrid").Number("feed_forward_length", 6);
  EXPECT_EQ(Translated(file).config["attention_multiplier"], 0.5) << "for heads of 4";
  file.F32("granitehybrid.attention.scale", 0);
  EXPECT_EQ(Translated(file).config["attention_multiplier"], 0.5);
}

TEST(GgufMamba, SizesThatDoNotFitAreRefused) {
  const auto with_width = [](uint32_t width) {
    GgufBuilder made;
    made.Text("general.architecture", "falcon-h1");
    for (const char* key : {"block_count", "context_length", "attention.head_count"}) {
      made.U32(fmt::format("falcon-h1.{}", key), 2);
    }
    for (const char* key : {"ssm.conv_kernel", "ssm.state_size", "ssm.group_count"}) {
      made.U32(fmt::format("falcon-h1.{}", key), 2);
    }
    made.U32("falcon-h1.embedding_length", 8).U32("falcon-h1.feed_forward_length", 8);
    made.U32("falcon-h1.ssm.time_step_rank", 4).U32("falcon-h1.ssm.inner_size", width);
    AddMatrix(made, "token_embd.weight", 5, 8);
    return made;
  };
  EXPECT_EQ(Translated(with_width(12)).config["mamba_d_head"], 3);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, with_width(13)),
              HasSubstr("falcon-h1.ssm.inner_size: expected a multiple of 4 heads, found 13"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, File("granitehybrid").Number("feed_forward_length", 6)),
              HasSubstr("granitehybrid.attention.head_count_kv: expected a list, one for each of 3 "
                        "layers, found one number"));
  EXPECT_THAT(
      Refusal(ErrorKind::kFormat, Hybrid("granitehybrid", {0, 1}).Number("feed_forward_length", 6)),
      HasSubstr("expected a list, one for each of 3 layers, found 2"));
}

TEST(GgufFalconH1, MatricesHaveTakenInTheFactors) {
  File file("falcon-h1");
  file.Number("attention.head_count_kv", 1).Number("feed_forward_length", 6);
  file.Vector("blk.0.ffn_norm");
  const Translated model(file);
  EXPECT_EQ(model.config["mamba_d_ssm"], 16);
  EXPECT_EQ(model.config["mamba_d_head"], 4);
  EXPECT_EQ(model.config["mamba_rms_norm"], false);
  EXPECT_EQ(model.config["mamba_conv_bias"], false);
  for (const auto& [key, value] : model.config.items()) {
    EXPECT_EQ(key.find("multiplier"), std::string::npos) << key;
  }
  EXPECT_NE(model.model.weights->Find("model.layers.0.pre_ff_layernorm.weight"), nullptr)
      << "whose name in the file has no ending";
  const Translated normed(file.Vector("blk.0.ssm_norm.weight"));
  EXPECT_EQ(normed.config["mamba_rms_norm"], true);
  EXPECT_EQ(normed.config["mamba_norm_before_gate"], false);
  file.Number("rope.dimension_count", 2);
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, file), HasSubstr("falcon-h1.rope.dimension_count"));
}

TEST(GgufNemotronH, EachLayerIsOneBlock) {
  File file = Hybrid("nemotron_h").Numbers("feed_forward_length", {0, 0, 6});
  file.Vector("blk.2.ffn_up.bias");
  const Translated model(file);
  EXPECT_EQ(model.config["layers_block_type"], json({"mamba", "attention", "mlp"}));
  EXPECT_EQ(model.config["intermediate_size"], 6);
  EXPECT_EQ(model.config["mamba_head_dim"], 4);
  EXPECT_EQ(model.config["mamba_num_heads"], 4);
  EXPECT_EQ(model.config["ssm_state_size"], 5);
  EXPECT_EQ(model.config["conv_kernel"], 3);
  EXPECT_EQ(model.config["n_groups"], 2);
  EXPECT_EQ(model.config["mlp_bias"], true);
  EXPECT_FLOAT_EQ(model.config["layer_norm_epsilon"].get<float>(), 1e-3f);
  const auto refusal = [](const std::vector<int32_t>& widths, ErrorKind kind) {
    return Refusal(kind, Hybrid("nemotron_h").Numbers("feed_forward_length", widths));
  };
  EXPECT_THAT(refusal({6, 0, 7}, ErrorKind::kUnsupported),
              HasSubstr("nemotron_h.feed_forward_length: expected one width, and 0 for layers "
                        "without, found 6 and 7"));
  EXPECT_THAT(refusal({0, 0}, ErrorKind::kFormat), HasSubstr("one for each of 3 layers"));
  EXPECT_FALSE(Translated(Hybrid("nemotron_h").Numbers("feed_forward_length", {0, 0, 0}))
                   .config.contains("intermediate_size"));
}

TEST(GgufNemotronH, Experts) {
  const auto experts = [](uint32_t shared) {
    File file = Hybrid("nemotron_h_moe").Numbers("feed_forward_length", {0, 0, 6});
    file.Number("expert_count", 4).Number("expert_used_count", 2);
    file.Number("expert_feed_forward_length", 6).Number("expert_shared_count", shared);
    file.Number("expert_shared_feed_forward_length", 7);
    file.Bool("nemotron_h_moe.expert_weights_norm", true);
    file.F32("nemotron_h_moe.expert_weights_scale", 2.5f);
    return file;
  };
  const Translated model(experts(1));
  EXPECT_EQ(model.config["layers_block_type"], json({"mamba", "attention", "moe"}));
  EXPECT_EQ(model.config["n_routed_experts"], 4);
  EXPECT_EQ(model.config["moe_intermediate_size"], 6);
  EXPECT_EQ(model.config["moe_shared_expert_intermediate_size"], 7);
  EXPECT_EQ(model.config["routed_scaling_factor"], 2.5);
  EXPECT_EQ(model.config["norm_topk_prob"], true);
  EXPECT_EQ(model.config["model_type"], "nemotron_h");
  // The layer that predicts is both attention and experts, and counts in lists.
  File predicting = Hybrid("nemotron_h_moe", {0, 1, 1});
  predicting.Numbers("feed_forward_length", {6, 0, 6}).Number("nextn_predict_layers", 1);
  predicting.Number("expert_count", 4).Number("expert_used_count", 2);
  predicting.Number("expert_feed_forward_length", 6).Number("expert_shared_count", 1);
  predicting.Number("expert_shared_feed_forward_length", 7);
  EXPECT_EQ(Translated(predicting).config["layers_block_type"], json({"moe", "attention"}));
}

}  // namespace
}  // namespace godwit::mamba_gguf_test
