#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama's attention with LayerNorm and biases throughout, a plain GELU unit, a tied head.
DecoderSpec DescribeStarcoder2(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(
      config, {.default_activation = "gelu_pytorch_tanh", .tied_by_default = true});
  ReadRotary(config, spec.head_dim, "rope_theta", spec);
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("norm_epsilon", 1e-5, {0, 1}));
  spec.norm_bias = true;
  spec.qkv_bias = spec.attention_out_bias = spec.mlp.bias = config.BoolOr("use_bias", true);
  spec.mlp.gated = false;
  ReadStatedWindows(config, spec);
  spec.names.up = "model.layers.{}.mlp.c_fc";
  spec.names.down = "model.layers.{}.mlp.c_proj";
  return spec;
}

namespace {

constexpr GgufName kStarcoder2Layers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_up", "model.layers.{}.mlp.c_fc"},
    {"ffn_down", "model.layers.{}.mlp.c_proj"},
};

// No key says so, but every published model has a window of 4096 tokens.
void CompleteStarcoder2(const GgufMetadata& metadata, const GgufShape& shape,
                        nlohmann::json& config) {
  constexpr int64_t kWindow = 4096;
  RequireWholeRotation(metadata, shape);
  config["use_bias"] = shape.qkv_bias;
  if (config.contains("layer_norm_eps")) config["norm_epsilon"] = config["layer_norm_eps"];
  if (!config.contains("sliding_window")) config["sliding_window"] = kWindow;
}

}  // namespace

const GgufFamily kStarcoder2Gguf = {.architecture = "starcoder2",
                                    .model_type = "starcoder2",
                                    .layers = kStarcoder2Layers,
                                    .complete = CompleteStarcoder2};

}  // namespace godwit
