// Requirements of single families beside the names of their tensors, which goldens check
// (tests/golden/gguf).

#include "model/archs/gguf_families.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/gguf_model_test_support.h"

namespace godwit::gguf_families_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// Model() with another depth and width.
GgufBuilder Deep(const std::string& architecture, uint32_t layers, uint32_t hidden) {
  GgufBuilder file;
  file.Text("general.architecture", architecture);
  const auto own = [&](const char* key) { return architecture + "." + key; };
  file.U32(own("block_count"), layers).U32(own("context_length"), 64);
  file.U32(own("embedding_length"), hidden).U32(own("feed_forward_length"), 16);
  file.U32(own("attention.head_count"), 2).U32(own("attention.key_length"), 4);
  file.U32(own("attention.value_length"), 4);
  AddMatrix(file, "token_embd.weight", 5, hidden);
  return file;
}

TEST(GgufGemma, NormsHoldTheirGains) {
  for (const char* name : {"gemma", "gemma2", "gemma3"}) {
    GgufBuilder file = Model(name);
    file.Tensor("output_norm.weight", {8}, kF32, Rows(8, 1));
    const Translated model(file);
    EXPECT_EQ(model.config["norm_gain_offset"], 0);
    EXPECT_EQ(model.config["dtype"], "bfloat16") << "what their embeddings' scale is rounded to";
    EXPECT_THAT(model.Column("model.norm.weight"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  }
}

// Heads have 4 numbers, and two heads share a hidden size of 20.
TEST(GgufGemma, TheScaleOfScoresFollowsFromTheSizeOfTheModel) {
  const auto scalar = [](const char* architecture, uint32_t layers) {
    return Translated(Deep(architecture, layers, 20)).config["query_pre_attn_scalar"];
  };
  EXPECT_EQ(scalar("gemma2", 42), 4);
  EXPECT_EQ(scalar("gemma2", 46), 10) << "27B";
  EXPECT_EQ(scalar("gemma2", 62), 4);
  EXPECT_EQ(scalar("gemma3", 48), 4);
  EXPECT_EQ(scalar("gemma3", 62), 10) << "27B";
  EXPECT_FALSE(Translated(Deep("gemma", 46, 20)).config.contains("query_pre_attn_scalar"));
}

TEST(GgufGemma, CapsAndWindowsAreWhatTheFileSays) {
  const json silent = Translated(Model("gemma2")).config;
  EXPECT_FALSE(silent.contains("attn_logit_softcapping") || silent.contains("sliding_window"))
      << "then the family knows";
  GgufBuilder file = Model("gemma2");
  file.F32("gemma2.attn_logit_softcapping", 50).F32("gemma2.final_logit_softcapping", 0);
  file.U32("gemma2.attention.sliding_window", 4096);
  const json config = Translated(file).config;
  EXPECT_EQ(config["attn_logit_softcapping"], 50);
  EXPECT_TRUE(config["final_logit_softcapping"].is_null()) << "none, not the usual";
  EXPECT_EQ(config["sliding_window"], 4096);

  const json third = Translated(Model("gemma3")).config;
  EXPECT_TRUE(third.contains("sliding_window") && third["sliding_window"].is_null());
  EXPECT_EQ(Translated(Model("gemma3").F32("gemma3.rope.freq_base_swa", 5e4f))
                .config["rope_local_base_freq"],
            5e4);
}

TEST(GgufWindows, APatternIsAPeriodOrAList) {
  const std::string key = "gemma3.attention.sliding_window_pattern";
  const auto with_window = [](uint32_t layers) {
    return Deep("gemma3", layers, 8).U32("gemma3.attention.sliding_window", 8);
  };
  const auto types = [&](GgufBuilder file) {
    return Translated(file).config.value("layer_types", json());
  };
  const json windowed = "sliding_attention", full = "full_attention";
  EXPECT_TRUE(types(with_window(3)).is_null());
  EXPECT_EQ(types(with_window(3).U32(key, 2)), json({windowed, full, windowed}));
  EXPECT_EQ(types(with_window(2).List<uint8_t>(key, GgufType::kBool, {0, 1})),
            json({full, windowed}));
  EXPECT_TRUE(types(Deep("gemma3", 3, 8).U32(key, 2)).is_null()) << "without a window";
  EXPECT_THAT(Refusal(ErrorKind::kFormat, with_window(3).U32(key, 0)), HasSubstr("from 1 to"));
  for (const std::vector<uint8_t>& list : {std::vector<uint8_t>{1}, std::vector<uint8_t>{}}) {
    EXPECT_THAT(
        Refusal(ErrorKind::kFormat, with_window(2).List<uint8_t>(key, GgufType::kBool, list)),
        HasSubstr("sliding_window_pattern: expected one for each of 2 layers"));
  }
  EXPECT_THAT(
      Refusal(ErrorKind::kFormat, with_window(2).List<uint32_t>(key, GgufType::kU32, {0, 1})),
      HasSubstr("expected a list of bool"));
  EXPECT_THAT(
      Refusal(ErrorKind::kFormat, with_window(2).List<uint8_t>(key, GgufType::kBool, {0, 2})),
      HasSubstr("expected a list of true and false"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, with_window(1 << 30).U32(key, 2)),
              HasSubstr("gemma3.block_count: expected a whole number from 1 to 4096"));
}

// Heads have 4 numbers: two rotations.
GgufBuilder LongRope(const std::string& long_factors, const std::string& short_factors) {
  GgufBuilder file = Model("phi3");
  file.U32("phi3.rope.scaling.original_context_length", 16);
  file.Tensor("rope_factors_long.weight", {long_factors.size() / 4}, kF32, long_factors);
  return file.Tensor("rope_factors_short.weight", {short_factors.size() / 4}, kF32, short_factors);
}

TEST(GgufPhi3, HasItsFactorsOfLongRopeInTensors) {
  const std::string longs = Raw(3.0f) + Raw(4.0f), shorts = Raw(1.0f) + Raw(2.0f);
  json expected = {{"rope_type", "longrope"},
                   {"long_factor", {3.0, 4.0}},
                   {"short_factor", {1.0, 2.0}},
                   {"original_max_position_embeddings", 16}};
  const Translated model(LongRope(longs, shorts));
  EXPECT_EQ(model.config["rope_scaling"], expected);
  EXPECT_EQ(model.model.weights->Names(), std::vector<std::string>{"model.embed_tokens.weight"});
  GgufBuilder more = LongRope(longs, shorts);
  more.F32("phi3.rope.scaling.attn_factor", 1.5f).Text("phi3.rope.scaling.type", "longrope");
  expected["attention_factor"] = 1.5;
  EXPECT_EQ(Translated(more).config["rope_scaling"], expected);

  EXPECT_THAT(Refusal(ErrorKind::kFormat, LongRope(longs, shorts + longs)),
              HasSubstr("tensor rope_factors_short.weight: expected 2 factors in F32"));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported,
                      LongRope(longs, shorts).Text("phi3.rope.scaling.type", "yarn")),
              HasSubstr("phi3.rope.scaling.type: expected longrope beside rope_factors_long"));
  GgufBuilder one = Model("phi3");
  one.Tensor("rope_factors_short.weight", {2}, kF32, shorts);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, one), HasSubstr("found one of them"));
  GgufBuilder scalar = Model("phi3").U32("phi3.rope.dimension_count", 2);
  scalar.Tensor("rope_factors_long.weight", {}, kF32, Raw(1.0f));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, scalar), HasSubstr("expected 1 factors in F32"));
}

TEST(GgufPhi3, WindowsOfNoTokensAreNone) {
  EXPECT_EQ(
      Translated(Model("phi3").U32("phi3.attention.sliding_window", 9)).config["sliding_window"],
      9);
  const json config = Translated(Model("phi3").U32("phi3.attention.sliding_window", 0)).config;
  EXPECT_TRUE(config["sliding_window"].is_null());
}

TEST(GgufGranite, LogitScaleDividesLogits) {
  GgufBuilder file = Model("granite");
  file.F32("granite.logit_scale", 8).F32("granite.embedding_scale", 12);
  file.F32("granite.residual_scale", 0.5f).F32("granite.attention.scale", 0.25f);
  const json config = Translated(file).config;
  EXPECT_EQ(config["logits_scaling"], 8);
  EXPECT_FALSE(config.contains("logit_scale"));
  EXPECT_EQ(config["embedding_multiplier"], 12);
  EXPECT_EQ(config["residual_multiplier"], 0.5);
  EXPECT_EQ(config["attention_multiplier"], 0.25);
  EXPECT_THAT(
      Refusal(ErrorKind::kUnsupported, Model("granite").Bool("granite.rope.scaling.finetuned", 0)),
      HasSubstr("granite.rope.scaling.finetuned: expected true, because layers without positions"));
}

TEST(GgufGranite, ExpertsAreTakenApart) {
  GgufBuilder file = Model("granitemoe");
  file.U32("granitemoe.expert_count", 2).U32("granitemoe.expert_used_count", 1);
  file.Tensor("blk.0.ffn_up_exps.weight", {2, 16, 8}, kF32, Rows(32, 8));
  const Translated model(file);
  EXPECT_EQ(model.config["model_type"], "granitemoe");
  EXPECT_EQ(model.config["gate_is_apart"], true);
  EXPECT_EQ(model.Column("model.layers.0.block_sparse_moe.experts.1.up_proj.weight")[0], 16);
  const json shared =
      Translated(file.U32("granitemoe.expert_shared_feed_forward_length", 4)).config;
  EXPECT_EQ(shared["model_type"], "granitemoeshared");
  EXPECT_EQ(shared["shared_intermediate_size"], 4);
}

TEST(GgufOlmo, HasOneEpsilon) {
  const std::string key = "olmo.attention.layer_norm_epsilon";
  const json config =
      Translated(Model("olmo").F32(key, 1e-5f).F32("olmo.attention.clamp_kqv", 8)).config;
  EXPECT_EQ(config["clip_qkv"], 8);
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, Model("olmo").F32(key, 0.5f)),
              HasSubstr("layer_norm_epsilon: expected 1e-05, found 0.5"));
}

TEST(GgufOlmo2, WithWindowsIsOlmo3) {
  EXPECT_EQ(Translated(Model("olmo2")).config["model_type"], "olmo2");
  GgufBuilder file = Model("olmo2");
  file.U32("olmo2.attention.sliding_window", 8).F32("olmo2.rope.freq_base_swa", 1e4f);
  file.List<uint8_t>("olmo2.attention.sliding_window_pattern", GgufType::kBool, {1});
  const json config = Translated(file).config;
  EXPECT_EQ(config["model_type"], "olmo3");
  EXPECT_EQ(config["layer_types"], json({"sliding_attention"}));
  EXPECT_FALSE(config.contains("rope_local_base_freq")) << "it is the base of all";
}

TEST(GgufStableLm, TensorsTellHowItsBlocksStand) {
  GgufBuilder file = Model("stablelm");
  file.Bool("stablelm.use_parallel_residual", true).U32("stablelm.rope.dimension_count", 2);
  const json parallel = Translated(file).config;
  EXPECT_EQ(parallel["use_parallel_residual"], true);
  EXPECT_EQ(parallel["qk_layernorm"], false);
  EXPECT_NEAR(parallel["partial_rotary_factor"].get<double>(), 0.5, 0.2);
  file.Tensor("blk.0.ffn_norm.weight", {8}, kF32, Rows(8, 1));
  AddMatrix(file, "blk.0.attn_q_norm.weight", 2, 4);
  const Translated model(file);
  EXPECT_EQ(model.config["use_parallel_residual"], false) << "whatever the key says";
  EXPECT_EQ(model.config["qk_layernorm"], true);
  const TensorInfo* second =
      model.model.weights->Find("model.layers.0.self_attn.q_layernorm.norms.1.weight");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->Describe(), "F32 [4]");
  EXPECT_EQ(ReadAllRows(*second)[0], 1);

  GgufBuilder flat = Model("stablelm");
  flat.Tensor("blk.0.attn_k_norm.weight", {4}, kF32, Rows(4, 1));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, flat),
              HasSubstr("expected the rows of up to 4096 heads"));
}

TEST(GgufStarcoder2, HasTheWindowOfAllPublishedModels) {
  GgufBuilder file = Model("starcoder2");
  file.F32("starcoder2.attention.layer_norm_epsilon", 0.01f);
  const json config = Translated(file).config;
  EXPECT_EQ(config["sliding_window"], 4096);
  EXPECT_NEAR(config["norm_epsilon"].get<double>(), 0.01, 1e-6);
  EXPECT_EQ(config["use_bias"], false);
  EXPECT_EQ(Translated(file.U32("starcoder2.attention.sliding_window", 9)).config["sliding_window"],
            9);
}

TEST(GgufGptOss, HasTheRampAndTheEndingsOfItsFamily) {
  GgufBuilder file = Model("gpt-oss");
  file.U32("gpt-oss.expert_count", 2).U32("gpt-oss.expert_used_count", 1);
  file.U32("gpt-oss.expert_feed_forward_length", 8).Text("gpt-oss.rope.scaling.type", "yarn");
  file.F32("gpt-oss.rope.scaling.factor", 32);
  file.U32("gpt-oss.rope.scaling.original_context_length", 16);
  file.Tensor("blk.0.attn_sinks.weight", {2}, kF32, Rows(2, 1));
  file.Tensor("blk.0.ffn_up_exps.bias", {2, 8}, kF32, Rows(2, 8));
  const Translated model(file);
  EXPECT_EQ(model.config["intermediate_size"], 8);
  EXPECT_EQ(model.config["rope_scaling"]["truncate"], false);
  EXPECT_NE(model.model.weights->Find("model.layers.0.self_attn.sinks"), nullptr);
  const TensorInfo* bias = model.model.weights->Find("model.layers.0.mlp.experts.1.up_proj.bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_EQ(bias->Describe(), "F32 [8]");
  EXPECT_EQ(ReadAllRows(*bias)[0], 1);
}

GgufBuilder Experts(const std::string& architecture) {
  GgufBuilder file = Model(architecture);
  const auto own = [&](const char* key) { return architecture + "." + key; };
  file.U32(own("expert_count"), 4).U32(own("expert_used_count"), 2);
  file.U32(own("expert_feed_forward_length"), 8);
  return file;
}

TEST(GgufGlm4Moe, LayersThatPredictMoreTokensAreNotCounted) {
  GgufBuilder file = Deep("glm4moe", 3, 8);
  file.U32("glm4moe.expert_count", 4).U32("glm4moe.expert_used_count", 2);
  file.U32("glm4moe.expert_feed_forward_length", 8).U32("glm4moe.nextn_predict_layers", 1);
  file.U32("glm4moe.expert_shared_count", 1).F32("glm4moe.expert_weights_scale", 2.5f);
  const json config = Translated(file).config;
  EXPECT_EQ(config["num_hidden_layers"], 2);
  EXPECT_EQ(config["n_shared_experts"], 1);
  EXPECT_EQ(config["routed_scaling_factor"], 2.5);
  EXPECT_EQ(config["norm_topk_prob"], true);
  EXPECT_EQ(config["use_qk_norm"], false);
}

// The layer behind the last one has the names of any other, its own, and copies of the model's.
TEST(GgufGlm4Moe, TheFirstLayerThatPredictsIsRead) {
  GgufBuilder file = Deep("glm4moe", 4, 8);
  file.U32("glm4moe.expert_count", 2).U32("glm4moe.expert_used_count", 2);
  file.U32("glm4moe.expert_feed_forward_length", 8).U32("glm4moe.nextn_predict_layers", 2);
  for (const char* name : {"blk.2.attn_q", "blk.2.nextn.eh_proj", "blk.2.nextn.embed_tokens",
                           "blk.2.nextn.shared_head_head", "blk.3.attn_q", "blk.3.nextn.eh_proj"}) {
    AddMatrix(file, std::string(name) + ".weight", 4, 8);
  }
  file.Tensor("blk.2.ffn_up_exps.weight", {2, 4, 8}, kF32, Rows(8, 8));
  for (const char* norm : {"enorm", "hnorm", "shared_head_norm"}) {
    file.Tensor(fmt::format("blk.2.nextn.{}.weight", norm), {8}, kF32, Rows(8, 1));
  }
  const Translated model(file);
  EXPECT_EQ(model.config["num_nextn_predict_layers"], 2);
  std::vector<std::string> names = model.model.weights->Names();
  std::ranges::sort(names);
  std::vector<std::string> expected = {"model.embed_tokens.weight"};
  for (const char* name : {"eh_proj", "enorm", "hnorm", "mlp.experts.0.up_proj",
                           "mlp.experts.1.up_proj", "self_attn.q_proj", "shared_head.norm"}) {
    expected.push_back(fmt::format("model.layers.2.{}.weight", name));
  }
  EXPECT_EQ(names, expected);
}

TEST(GgufMistral4, QueriesHaveATemperature) {
  const auto file = [](bool stretched = true) {
    GgufBuilder made = Experts("mistral4");
    made.U32("mistral4.attention.kv_lora_rank", 16).U32("mistral4.rope.dimension_count", 2);
    made.U32("mistral4.attention.key_length_mla", 6);
    if (!stretched) return made;
    made.Text("mistral4.rope.scaling.type", "yarn").F32("mistral4.rope.scaling.factor", 4);
    made.U32("mistral4.rope.scaling.original_context_length", 16);
    made.F32("mistral4.rope.scaling.yarn_log_multiplier", 0.1f);
    return made;
  };
  GgufBuilder right = file();
  right.Tensor("blk.0.ffn_gate_up_exps.weight", {2, 4, 8}, kF32, Rows(8, 8));
  const Translated model(right);
  EXPECT_EQ(model.config["model_type"], "mistral4");
  EXPECT_EQ(model.config["rope_scaling"]["llama_4_scaling_beta"], 0.1) << "of published models";
  EXPECT_FLOAT_EQ(model.config["rope_scaling"]["mscale_all_dim"].get<float>(), 1);
  EXPECT_EQ(model.config["qk_nope_head_dim"], 4);
  EXPECT_EQ(model.Column("model.layers.0.mlp.experts.1.up_proj.weight"),
            (std::vector<float>{6, 7}));
  EXPECT_EQ(Translated(file().F32("mistral4.attention.temperature_scale", 0.5f))
                .config["rope_scaling"]["llama_4_scaling_beta"],
            0.5);
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, file(/*stretched=*/false)),
              HasSubstr("mistral4.rope.scaling.type: expected yarn"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file().U32("mistral4.attention.temperature_length", 17)),
              HasSubstr("mistral4.attention.temperature_length"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file().U32("mistral4.expert_gating_func", 2)),
              HasSubstr("mistral4.expert_gating_func"));
}

TEST(GgufDeepseek, SigmoidsAreV3) {
  GgufBuilder file = Experts("deepseek2");
  file.U32("deepseek2.attention.kv_lora_rank", 16).U32("deepseek2.rope.dimension_count", 2);
  const json v2 = Translated(file).config;
  EXPECT_EQ(v2["model_type"], "deepseek_v2");
  EXPECT_EQ(v2["topk_method"], "greedy");
  EXPECT_EQ(v2["norm_topk_prob"], false);
  EXPECT_TRUE(v2["q_lora_rank"].is_null());
  EXPECT_EQ(v2["qk_nope_head_dim"], 2) << "4 less those that rotate";
  EXPECT_EQ(v2["kv_b_is_apart"], false);
  file.U32("deepseek2.expert_gating_func", 2).U32("deepseek2.attention.key_length_mla", 6);
  file.U32("deepseek2.expert_group_count", 2).U32("deepseek2.attention.q_lora_rank", 12);
  file.Tensor("blk.0.attn_k_b.weight", {2, 16, 4}, kF32, Rows(32, 4));
  const Translated v3(file);
  EXPECT_EQ(v3.config["model_type"], "deepseek_v3");
  EXPECT_EQ(v3.config["topk_group"], 1);
  EXPECT_EQ(v3.config["q_lora_rank"], 12);
  EXPECT_EQ(v3.config["qk_nope_head_dim"], 4);
  EXPECT_EQ(v3.config["kv_b_is_apart"], true);
  EXPECT_EQ(v3.Column("model.layers.0.self_attn.k_b_proj.1.weight")[0], 16);
}

TEST(GgufLlama4, MaverickHasNoNormsOfQueries) {
  GgufBuilder file = Experts("llama4").U32("llama4.interleave_moe_layer_step", 2);
  const json scout = Translated(file).config;
  EXPECT_EQ(scout["use_qk_norm"], true);
  EXPECT_EQ(scout["intermediate_size"], 8);
  EXPECT_EQ(scout["intermediate_size_mlp"], 16);
  EXPECT_THAT(
      Refusal(ErrorKind::kUnsupported, Experts("llama4").U32("llama4.attention.sliding_window", 0)),
      HasSubstr("llama4.attention.sliding_window: expected none"));
  GgufBuilder many = Model("llama4").U32("llama4.expert_count", 128);
  many.U32("llama4.expert_used_count", 1).U32("llama4.expert_feed_forward_length", 8);
  EXPECT_EQ(Translated(many.U32("llama4.interleave_moe_layer_step", 2)).config["use_qk_norm"],
            false);
}

TEST(GgufApertus, ListsAreTensorsOfLayers) {
  const auto file = [](const std::vector<float>& eps) {
    return Deep("apertus", 2, 8).List<float>("xielu.eps", GgufType::kF32, eps);
  };
  const Translated model(file({-0.25f, -0.5f}));
  EXPECT_EQ(model.config["rope_scaling"]["rope_type"], "default");
  const TensorInfo* second = model.model.weights->Find("model.layers.1.mlp.act_fn.eps");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->Describe(), "F32 []");
  EXPECT_EQ(ReadAllRows(*second)[0], -0.5f);
  EXPECT_EQ(model.model.weights->Find("model.layers.0.mlp.act_fn.beta"), nullptr);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file({-0.25f})),
              HasSubstr("xielu.eps: expected one for each of 2 layers, found 1"));
}

TEST(GgufLfm2, LayersWithoutKvHeadsAreConvolutions) {
  const auto file = [](const std::vector<int32_t>& kv_heads) {
    GgufBuilder made = Deep("lfm2", 3, 8);
    made.U32("lfm2.shortconv.l_cache", 3).F32("lfm2.attention.layer_norm_rms_epsilon", 1e-5f);
    made.List<int32_t>("lfm2.attention.head_count_kv", GgufType::kI32, kv_heads);
    return made;
  };
  GgufBuilder right = file({0, 1, 0});
  right.Tensor("blk.0.shortconv.conv.weight", {8, 3}, kF32, Rows(8, 3));
  const Translated model(right);
  EXPECT_EQ(model.config["layer_types"], json({"conv", "full_attention", "conv"}));
  EXPECT_EQ(model.config["num_key_value_heads"], 1);
  EXPECT_EQ(model.config["conv_L_cache"], 3);
  EXPECT_EQ(model.config["block_auto_adjust_ff_dim"], false);
  const TensorInfo* taps = model.model.weights->Find("model.layers.0.conv.conv.weight");
  ASSERT_NE(taps, nullptr);
  EXPECT_EQ(taps->Describe(), "F32 [8, 1, 3]");
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file({0, 1})), HasSubstr("one for each of 3 layers"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file({0, 0, 0})), HasSubstr("a layer with attention"));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, file({2, 1, 0})), HasSubstr("found 2 and 1"));
}

TEST(GgufQwen, GatedDeltaNetsAreAsConvertersStoreThem) {
  const auto file = [](const std::string& architecture, uint32_t inner, uint32_t predicting = 1) {
    GgufBuilder made = Deep(architecture, 3, 8);
    const auto own = [&](const char* key) { return architecture + "." + key; };
    made.U32(own("ssm.conv_kernel"), 3).U32(own("ssm.state_size"), 5);
    made.U32(own("ssm.group_count"), 2).U32(own("ssm.time_step_rank"), 4);
    made.U32(own("ssm.inner_size"), inner).U32(own("full_attention_interval"), 2);
    made.U32(own("expert_count"), 4).U32(own("expert_used_count"), 2);
    made.U32(own("expert_feed_forward_length"), 6);
    made.U32(own("expert_shared_feed_forward_length"), 7);
    made.U32(own("nextn_predict_layers"), predicting);
    made.List<int32_t>(own("rope.dimension_sections"), GgufType::kI32, {1, 1, 0, 0});
    return made;
  };
  GgufBuilder right = file("qwen35", 12);
  right.Tensor("blk.0.ssm_a", {4}, kF32, Rows(4, 1));
  right.Tensor("blk.0.ssm_dt.bias", {4}, kF32, Rows(4, 1));
  right.Tensor("blk.0.ssm_conv1d.weight", {32, 3}, kF32, Rows(32, 3));
  AddMatrix(right, "blk.2.attn_q.weight", 16, 8);
  AddMatrix(right, "blk.2.nextn.eh_proj.weight", 8, 16);
  const Translated dense(right);
  EXPECT_EQ(dense.config["num_hidden_layers"], 2) << "a layer that predicts one more token";
  EXPECT_EQ(dense.config["linear_value_head_dim"], 3);
  EXPECT_EQ(dense.config["linear_num_value_heads"], 4);
  EXPECT_EQ(dense.config["linear_value_heads_in_turn"], true);
  EXPECT_EQ(dense.config["decay_rates_negated"], true);
  EXPECT_EQ(dense.config["norm_gain_offset"], 0);
  EXPECT_FALSE(dense.config.contains("use_mrope"));
  const WeightSource& weights = *dense.model.weights;
  ASSERT_NE(weights.Find("model.layers.0.linear_attn.A_log"), nullptr);
  ASSERT_NE(weights.Find("model.layers.0.linear_attn.dt_bias"), nullptr);
  EXPECT_EQ(weights.Find("model.layers.0.linear_attn.conv1d.weight")->Describe(), "F32 [32, 1, 3]");
  EXPECT_EQ(dense.config["mtp_num_hidden_layers"], 1);
  EXPECT_EQ(weights.Find("mtp.layers.0.self_attn.q_proj.weight")->Describe(), "F32 [16, 8]");
  EXPECT_EQ(weights.Find("mtp.fc.weight")->Describe(), "F32 [8, 16]");

  GgufBuilder shared = file("qwen35moe", 12);
  shared.Tensor("blk.0.ffn_gate_inp_shexp.weight", {8}, kF32, Rows(8, 1));
  AddMatrix(shared, "blk.1.ffn_gate_inp_shexp.weight", 1, 8);
  const Translated with_share(shared);
  for (const char* layer : {"0", "1"}) {
    EXPECT_EQ(with_share.model.weights
                  ->Find(fmt::format("model.layers.{}.mlp.shared_expert_gate.weight", layer))
                  ->shape,
              (std::vector<int64_t>{1, 8}));
  }
  const json experts = Translated(file("qwen35moe", 12)).config;
  EXPECT_EQ(experts["model_type"], "qwen3_5_moe_text");
  EXPECT_EQ(experts["shared_expert_intermediate_size"], 7);
  EXPECT_FALSE(experts.contains("intermediate_size"));
  const json next = Translated(file("qwen3next", 12)).config;
  EXPECT_EQ(next["model_type"], "qwen3_next");
  EXPECT_EQ(next["linear_inputs_apart"], true);
  EXPECT_FALSE(next.contains("linear_value_heads_in_turn"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file("qwen35", 13)), HasSubstr("a multiple of 4 heads"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file("qwen35", 12, 3)),
              HasSubstr("fewer than all 3 layers"));
}

TEST(GgufGraniteHybrid, LayersWithoutKvHeadsAreMamba2) {
  const auto file = [](const std::vector<int32_t>& kv_heads, uint32_t inner, uint32_t experts) {
    GgufBuilder made = Deep("granitehybrid", 2, 8);
    const auto own = [](const char* key) { return fmt::format("granitehybrid.{}", key); };
    made.List<int32_t>(own("attention.head_count_kv"), GgufType::kI32, kv_heads);
    made.U32(own("ssm.conv_kernel"), 4).U32(own("ssm.state_size"), 5);
    made.U32(own("ssm.group_count"), 1).U32(own("ssm.time_step_rank"), 4);
    made.U32(own("ssm.inner_size"), inner).Bool(own("rope.scaling.finetuned"), false);
    made.U32(own("expert_count"), experts).U32(own("expert_used_count"), 2);
    made.U32(own("expert_shared_feed_forward_length"), 7);
    return made;
  };
  GgufBuilder right = file({0, 1}, 16, 3);
  right.Tensor("blk.0.ssm_a", {4, 1}, kF32, Rows(4, 1));
  right.Tensor("blk.0.ssm_norm.weight", {2, 8}, kF32, Rows(2, 8));
  const Translated model(right);
  EXPECT_EQ(model.config["layer_types"], json({"mamba", "attention"}));
  EXPECT_EQ(model.config["position_embedding_type"], "nope");
  EXPECT_EQ(model.config["mamba_expand"], 2);
  EXPECT_EQ(model.config["mamba_d_head"], 4);
  EXPECT_EQ(model.config["shared_intermediate_size"], 7);
  const WeightSource& weights = *model.model.weights;
  EXPECT_EQ(weights.Find("model.layers.0.mamba.A_log")->Describe(), "F32 [4]");
  EXPECT_EQ(weights.Find("model.layers.0.mamba.norm.weight")->Describe(), "F32 [16]");
  EXPECT_EQ(Translated(file({0, 1}, 16, 0)).config["shared_intermediate_size"], 16)
      << "the one MLP's, without experts";
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file({0, 1}, 20, 3)), HasSubstr("a multiple of 8"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, file({1}, 16, 3)), HasSubstr("one for each of 2 layers"));
}

TEST(GgufExaone4, SilenceIsNoWindow) {
  EXPECT_TRUE(Translated(Model("exaone4")).config.at("sliding_window").is_null());
}

TEST(GgufCommandR, LogitsAreMultiplied) {
  EXPECT_EQ(
      Translated(Model("command-r").F32("command-r.logit_scale", 0.25f)).config["logit_scale"],
      0.25);
  EXPECT_EQ(Translated(Model("command-r")).config["logit_scale"], 1)
      << "not what cohere's default is";
  EXPECT_EQ(Translated(Model("command-r")).config["use_qk_norm"], false);
  GgufBuilder plus = Model("command-r");
  AddMatrix(plus, "blk.0.attn_q_norm.weight", 2, 4);
  EXPECT_EQ(Translated(plus).config["use_qk_norm"], true);
  EXPECT_EQ(Translated(Model("cohere2")).config["model_type"], "cohere2");
}

}  // namespace
}  // namespace godwit::gguf_families_test
