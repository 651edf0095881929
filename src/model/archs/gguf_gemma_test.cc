// Gemma 3n and Gemma 4 in GGUF: what their keys and tensors say, and what is refused.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/archs/gguf_families.h"
#include "model/gguf_model_test_support.h"

namespace godwit::gguf_gemma_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Four layers, of which every other one has a window, and heads of 8 and of 4 numbers.
class Fourth : public GgufBuilder {
 public:
  explicit Fourth(uint32_t rotated = 4) {
    Text("general.architecture", "gemma4");
    const std::pair<const char*, uint32_t> numbers[] = {{"block_count", 4},
                                                        {"context_length", 64},
                                                        {"embedding_length", 8},
                                                        {"attention.head_count", 2},
                                                        {"attention.key_length", 8},
                                                        {"attention.value_length", 8},
                                                        {"attention.key_length_swa", 4},
                                                        {"attention.value_length_swa", 4},
                                                        {"attention.sliding_window", 9},
                                                        {"rope.dimension_count", 8},
                                                        {"rope.dimension_count_swa", rotated}};
    for (const auto& [key, value] : numbers) {
      U32(Own(key), value);
    }
    F32(Own("attention.layer_norm_rms_epsilon"), 1e-6f);
    F32(Own("rope.freq_base"), 1e6f).F32(Own("rope.freq_base_swa"), 1e4f);
    List<uint8_t>(Own("attention.sliding_window_pattern"), GgufType::kBool, {1, 0, 1, 0});
    AddMatrix(*this, "token_embd.weight", 5, 8);
  }

  static std::string Own(std::string_view key) { return fmt::format("gemma4.{}", key); }
  Fourth& Number(std::string_view key, uint32_t value) {
    U32(Own(key), value);
    return *this;
  }
  Fourth& Numbers(std::string_view key, const std::vector<int32_t>& values) {
    List<int32_t>(Own(key), GgufType::kI32, values);
    return *this;
  }
  Fourth& Factors(const std::vector<float>& factors) {
    std::string bytes;
    for (const float factor : factors) bytes += Raw(factor);
    Tensor("rope_freqs.weight", {factors.size()}, kF32, bytes);
    return *this;
  }
};

Fourth Simple(uint32_t rotated = 4) {
  return Fourth(rotated).Number("attention.head_count_kv", 1).Number("feed_forward_length", 6);
}

TEST(GgufGemma4, LayersWithoutAWindowHaveLargeHeads) {
  const json config = Translated(Simple()).config;
  EXPECT_EQ(config["layer_types"],
            json({"sliding_attention", "full_attention", "sliding_attention", "full_attention"}));
  EXPECT_EQ(config["head_dim"], 4);
  EXPECT_EQ(config["global_head_dim"], 8);
  EXPECT_EQ(config["num_kv_shared_layers"], 0);
  EXPECT_EQ(config["attention_k_eq_v"], false);
  EXPECT_EQ(config["hidden_size_per_layer_input"], 0);
  EXPECT_EQ(config["dtype"], "bfloat16") << "what the scale of embeddings is rounded to";
  EXPECT_FALSE(config.contains("enable_moe_block") || config.contains("rope_theta"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, Simple(/*rotated=*/2)),
              HasSubstr("gemma4.rope.dimension_count_swa"));
}

TEST(GgufGemma4, FactorsSayWhichPairsTurn) {
  const json whole = Translated(Simple()).config["rope_parameters"];
  EXPECT_EQ(whole["full_attention"], json({{"rope_type", "proportional"}, {"rope_theta", 1e6}}));
  EXPECT_EQ(whole["sliding_attention"], json({{"rope_type", "default"}, {"rope_theta", 1e4}}));
  const auto part = [](const std::vector<float>& factors) {
    return Translated(Simple().Factors(factors))
        .config["rope_parameters"]["full_attention"]["partial_rotary_factor"]
        .get<double>();
  };
  for (const int pairs : {0, 1, 3}) {
    std::vector<float> factors(4, 1e30f);
    std::fill_n(factors.begin(), pairs, 1.0f);
    EXPECT_EQ(std::floor(part(factors) * 8 / 2), pairs);
  }
  EXPECT_EQ(part({1, 1, 1, 1}), 1);
  for (const std::vector<float>& factors :
       {std::vector<float>{1, 2, 1e30f, 1e30f}, {1e30f, 1, 1e30f, 1e30f}}) {
    EXPECT_THAT(Refusal(ErrorKind::kUnsupported, Simple().Factors(factors)),
                HasSubstr("tensor rope_freqs.weight: expected factors 1, then 1e30"));
  }
  EXPECT_THAT(Refusal(ErrorKind::kFormat, Simple().Factors({1, 1e30f})),
              HasSubstr("tensor rope_freqs.weight: expected 4 factors in F32"));
  Fourth scaled = Simple();
  scaled.Text("gemma4.rope.scaling.type", "linear").F32("gemma4.rope.scaling.factor", 2);
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, scaled),
              HasSubstr("gemma4.rope.scaling.type: expected none"));
}

TEST(GgufGemma4, KvHeadsMayDiffer) {
  const auto file = [](const std::vector<int32_t>& kv_heads) {
    return Fourth().Number("feed_forward_length", 6).Numbers("attention.head_count_kv", kv_heads);
  };
  Fourth of_keys = file({2, 1, 2, 1});
  AddMatrix(of_keys, "blk.0.attn_k.weight", 8, 8);
  AddMatrix(of_keys, "blk.0.attn_v.weight", 8, 8);
  AddMatrix(of_keys, "blk.1.attn_k.weight", 8, 8);
  const json config = Translated(of_keys).config;
  EXPECT_EQ(config["num_key_value_heads"], 2);
  EXPECT_EQ(config["num_global_key_value_heads"], 1);
  EXPECT_EQ(config["attention_k_eq_v"], true);
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, file({2, 1, 2, 1})),
              HasSubstr("gemma4.attention.head_count_kv: expected one number, because all layers "
                        "have projections for values, found 2 and 1"));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, file({2, 1, 1, 1})),
              HasSubstr("one number for layers with a window, and one for the others"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file({2, 1})), HasSubstr("one for each of 4 layers"));
  EXPECT_EQ(Translated(file({1, 1, 1, 1})).config["num_key_value_heads"], 1);
}

TEST(GgufGemma4, LayersThatReadKeysMayHaveWideMlps) {
  const auto file = [](const std::vector<int32_t>& widths) {
    return Fourth()
        .Number("attention.head_count_kv", 1)
        .Number("attention.shared_kv_layers", 1)
        .Numbers("feed_forward_length", widths);
  };
  const json wide = Translated(file({6, 6, 6, 12})).config;
  EXPECT_EQ(wide["intermediate_size"], 6);
  EXPECT_EQ(wide["use_double_wide_mlp"], true);
  EXPECT_EQ(wide["num_kv_shared_layers"], 1);
  EXPECT_EQ(Translated(file({6, 6, 6, 6})).config["use_double_wide_mlp"], false);
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, file({6, 6, 12, 12})),
              HasSubstr("gemma4.feed_forward_length: expected 6 for layer 2"));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, file({6, 6, 6, 7})),
              HasSubstr("expected 12 for layer 3"));
}

TEST(GgufGemma4, ExpertsAndFactorsShareTheirNames) {
  Fourth file = Simple();
  file.Number("expert_count", 2).Number("expert_used_count", 1);
  file.Number("expert_feed_forward_length", 3);
  file.Tensor("blk.0.ffn_gate_up_exps.weight", {2, 6, 8}, kF32, Rows(12, 8));
  file.Tensor("blk.0.ffn_down_exps.weight", {2, 8, 3}, kF32, Rows(16, 3));
  file.Tensor("blk.0.ffn_down_exps.scale", {2}, kF32, Rows(2, 1));
  file.Tensor("blk.0.ffn_gate_inp.weight", {2, 8}, kF32, Rows(2, 8));
  file.Tensor("blk.0.ffn_gate_inp.scale", {8}, kF32, Rows(8, 1));
  file.Tensor("blk.0.layer_output_scale.weight", {1}, kF32, Rows(1, 1));
  const Translated model(file);
  EXPECT_EQ(model.config["enable_moe_block"], true);
  EXPECT_EQ(model.config["num_experts"], 2);
  EXPECT_EQ(model.config["moe_intermediate_size"], 3);
  const std::string layer = "model.layers.0.";
  EXPECT_EQ(model.Column(layer + "experts.0.gate_proj.weight"), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(model.Column(layer + "experts.0.up_proj.weight"), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(model.Column(layer + "experts.1.gate_proj.weight"), (std::vector<float>{6, 7, 8}));
  EXPECT_EQ(model.Column(layer + "experts.1.up_proj.weight"), (std::vector<float>{9, 10, 11}));
  const WeightSource& weights = *model.model.weights;
  for (const char* name : {"router.scale", "router.per_expert_scale", "router.proj.weight",
                           "layer_scalar", "experts.1.down_proj.weight"}) {
    EXPECT_NE(weights.Find(layer + name), nullptr) << name;
  }
  Fourth odd = Simple();
  odd.Tensor("blk.0.ffn_gate_up_exps.weight", {2, 5, 8}, kF32, Rows(10, 8));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, odd), HasSubstr("expected an even number of rows"));
}

TEST(GgufGemma4, WindowsMustBeStated) {
  GgufBuilder file;
  file.Text("general.architecture", "gemma4");
  for (const char* key : {"block_count", "context_length", "embedding_length",
                          "attention.head_count", "feed_forward_length"}) {
    file.U32(fmt::format("gemma4.{}", key), 2);
  }
  file.U32("gemma4.attention.key_length", 4).U32("gemma4.attention.value_length", 4);
  AddMatrix(file, "token_embd.weight", 5, 2);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file),
              HasSubstr("gemma4.attention.sliding_window_pattern: expected a list"));
}

GgufBuilder Third(const std::vector<float>& deviations) {
  GgufBuilder file;
  file.Text("general.architecture", "gemma3n");
  const std::pair<const char*, uint32_t> numbers[] = {{"block_count", 2},
                                                      {"context_length", 64},
                                                      {"embedding_length", 8},
                                                      {"attention.head_count", 2},
                                                      {"attention.key_length", 4},
                                                      {"attention.value_length", 4},
                                                      {"attention.sliding_window", 9},
                                                      {"attention.shared_kv_layers", 1},
                                                      {"altup.num_inputs", 3},
                                                      {"altup.active_idx", 1},
                                                      {"embedding_length_per_layer_input", 6}};
  for (const auto& [key, value] : numbers) {
    file.U32(fmt::format("gemma3n.{}", key), value);
  }
  file.List<int32_t>("gemma3n.feed_forward_length", GgufType::kI32, {6, 7});
  file.List<float>("gemma3n.activation_sparsity_scale", GgufType::kF32, deviations);
  file.List<uint8_t>("gemma3n.attention.sliding_window_pattern", GgufType::kBool, {1, 0});
  AddMatrix(file, "token_embd.weight", 5, 8);
  AddMatrix(file, "per_layer_token_embd.weight", 5, 12);
  AddMatrix(file, "blk.0.laurel_l.weight", 3, 8);
  return file;
}

TEST(GgufGemma3n, DeviationsStandForThePartsOfGatesBelow) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  GgufBuilder file = Third({1.6448536f, kNone});
  file.Tensor("altup_proj.weight", {2, 8, 8}, kF32, Rows(16, 8));
  file.Tensor("blk.1.altup_correct_scale.weight", {8}, kF32, Rows(8, 1));
  const Translated model(file);
  EXPECT_NEAR(model.config["activation_sparsity_pattern"][0].get<double>(), 0.95, 1e-7);
  EXPECT_EQ(model.config["activation_sparsity_pattern"][1], 0);
  EXPECT_EQ(model.config["intermediate_size"], json({6, 7}));
  EXPECT_EQ(model.config["laurel_rank"], 3);
  EXPECT_EQ(model.config["altup_num_inputs"], 3);
  EXPECT_EQ(model.config["altup_active_idx"], 1);
  EXPECT_EQ(model.config["vocab_size_per_layer_input"], 5);
  EXPECT_EQ(model.config["num_kv_shared_layers"], 1);
  EXPECT_EQ(model.Column("model.altup_projections.1.weight").front(), 8);
  EXPECT_NE(model.model.weights->Find("model.layers.1.altup.correct_output_scale"), nullptr);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, Third({1})), HasSubstr("one for each of 2 layers"));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, Third({1, 9})),
              HasSubstr("gemma3n.activation_sparsity_scale: expected deviations up to 3.7"));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, Third({1, std::numeric_limits<float>::quiet_NaN()})),
              HasSubstr("gemma3n.activation_sparsity_scale"));
}

}  // namespace
}  // namespace godwit::gguf_gemma_test
