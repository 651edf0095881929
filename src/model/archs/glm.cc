#include <nlohmann/json.hpp>

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

void CompleteGlm4(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  config["attention_bias"] = shape.qkv_bias;
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
}

}  // namespace

const GgufFamily kGlm4Gguf = {
    .architecture = "glm4", .model_type = "glm4", .layers = kGlm4Layers, .complete = CompleteGlm4};

}  // namespace godwit
