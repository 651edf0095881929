#include <nlohmann/json.hpp>

#include "model/archs/deepseek_experts.h"
#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with rotary positions on half of a head, their pairs side by side. Biases are on q, k and v
// only. Gate and up are one tensor.
DecoderSpec DescribeGlm(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.rotary.rotary_dim = ReadRotaryDim(config, "partial_rotary_factor", 0.5, spec) / 2 * 2;
  spec.interleaved_rotary = true;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1.5625e-7, {0, 1}));
  spec.qkv_bias = config.BoolOr("attention_bias", true);
  spec.mlp.fused = true;
  spec.names.up = "model.layers.{}.mlp.gate_up_proj";
  return spec;
}

// GLM with another norm behind each block.
DecoderSpec DescribeGlm4(const HfConfig& config) {
  DecoderSpec spec = DescribeGlm(config);
  spec.output_norms = true;
  spec.names.attention_out_norm = "model.layers.{}.post_self_attn_layernorm";
  spec.names.mlp_out_norm = "model.layers.{}.post_mlp_layernorm";
  return spec;
}

// Llama with rotary positions on half of a head, norms of query and key heads where the config says
// so, and DeepSeek's experts.
DecoderSpec DescribeGlm4Moe(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config);
  ReadRotary(config, ReadRotaryDim(config, "partial_rotary_factor", 0.5, spec), "rope_theta", spec);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = config.BoolOr("attention_bias", false);
  if (config.BoolOr("use_qk_norm", false)) spec.qk_norm = QkNorm::kHeads;
  ReadSigmoidExperts(
      config, {.experts = 128, .intermediate = 1408, .per_token = 8, .dense_layers = 1}, spec);
  ReadDeepseekPrediction(config, spec);
  return spec;
}

namespace {

constexpr GgufName kGlm4Layers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"post_attention_norm", "model.layers.{}.post_self_attn_layernorm"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_up", "model.layers.{}.mlp.gate_up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"post_ffw_norm", "model.layers.{}.post_mlp_layernorm"},
};

constexpr GgufName kGlm4MoeLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"exp_probs_b", "model.layers.{}.mlp.gate.e_score_correction_bias", GgufRows::kAsTheyWere,
     ".bias"},
    {"ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj", GgufRows::kExperts},
    {"ffn_gate_shexp", "model.layers.{}.mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "model.layers.{}.mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "model.layers.{}.mlp.shared_experts.down_proj"},
};

void CompleteGlm4Moe(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  config["attention_bias"] = shape.qkv_bias;
  config["use_qk_norm"] = shape.qk_norm;
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
  ReadDeepSeekExperts(metadata, /*norm_unless_told=*/true, config);
  config["num_nextn_predict_layers"] = ReadLayers(metadata).predicting;
}

void CompleteGlm4(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  config["attention_bias"] = shape.qkv_bias;
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
}

}  // namespace

const GgufFamily kGlm4Gguf = {
    .architecture = "glm4", .model_type = "glm4", .layers = kGlm4Layers, .complete = CompleteGlm4};
const GgufFamily kGlm4MoeGguf = {.architecture = "glm4moe",
                                 .model_type = "glm4_moe",
                                 .layers = kGlm4MoeLayers,
                                 .prediction = kPredictionGgufNames,
                                 .complete = CompleteGlm4Moe};

}  // namespace godwit
