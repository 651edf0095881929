#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

DecoderSpec DescribeLlama(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.mlp.bias = config.BoolOr("mlp_bias", false);
  return spec;
}

// Pre-norm RMSNorm, rotary positions on whole heads, a gated SiLU unit, no biases.
DecoderSpec DescribeLlamaLike(const HfConfig& config, double default_theta) {
  DecoderSpec spec = DescribeLlamaShape(config);
  ReadRotary(config, spec.head_dim, "rope_theta", spec, default_theta);
  return spec;
}

DecoderSpec DescribeLlamaShape(const HfConfig& config, const CommonKeys& keys) {
  DecoderSpec spec;
  ReadCommonFields(config, spec, keys);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-6, {0, 1}));
  spec.names = {
      .embedding = "model.embed_tokens",
      .final_norm = "model.norm",
      .head = "lm_head",
      .attention_norm = "model.layers.{}.input_layernorm",
      .q = "model.layers.{}.self_attn.q_proj",
      .k = "model.layers.{}.self_attn.k_proj",
      .v = "model.layers.{}.self_attn.v_proj",
      .q_norm = "model.layers.{}.self_attn.q_norm",
      .k_norm = "model.layers.{}.self_attn.k_norm",
      .attention_out = "model.layers.{}.self_attn.o_proj",
      .mlp_norm = "model.layers.{}.post_attention_layernorm",
      .gate = "model.layers.{}.mlp.gate_proj",
      .up = "model.layers.{}.mlp.up_proj",
      .down = "model.layers.{}.mlp.down_proj",
      .harmless = {".rotary_emb.inv_freq"},
  };
  return spec;
}

void CompleteLlama(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
  config["mlp_bias"] = shape.mlp_bias;
  if (!config.value("sliding_window", nlohmann::json()).is_null()) config["model_type"] = "mistral";
  const int64_t experts =
      metadata.IntOr(metadata.ArchitectureKey("expert_count"), 0, {0, kSizeRange.max});
  if (experts == 0) return;
  config["model_type"] = "mixtral";
  config["num_local_experts"] = experts;
  config["num_experts_per_tok"] =
      metadata.Int(metadata.ArchitectureKey("expert_used_count"), kSizeRange);
}

const GgufFamily kLlamaGguf = {.architecture = "llama",
                               .model_type = "llama",
                               .other_types = {"mistral", "mixtral"},
                               .layers = kLlamaGgufLayers,
                               .complete = CompleteLlama};

}  // namespace godwit
