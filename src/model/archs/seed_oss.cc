#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with biases on q, k and v, and heads of 128 unless told.
DecoderSpec DescribeSeedOss(const HfConfig& config) {
  DecoderSpec spec =
      DescribeLlamaShape(config, {.default_head_dim = config.IsNull("head_dim") ? 0 : 128});
  ReadRotary(config, spec.head_dim, "rope_theta", spec);
  spec.qkv_bias = config.BoolOr("attention_bias", true);
  spec.attention_out_bias = config.BoolOr("attention_out_bias", false);
  spec.mlp.bias = config.BoolOr("mlp_bias", false);
  return spec;
}

namespace {

constexpr GgufName kSeedOssLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};

void CompleteSeedOss(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["head_dim"] = shape.head_dim;
  config["attention_bias"] = shape.qkv_bias;
  config["attention_out_bias"] = shape.attention_out_bias;
  config["mlp_bias"] = shape.mlp_bias;
}

}  // namespace

const GgufFamily kSeedOssGguf = {.architecture = "seed_oss",
                                 .model_type = "seed_oss",
                                 .layers = kSeedOssLayers,
                                 .complete = CompleteSeedOss};

}  // namespace godwit
