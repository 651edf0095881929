#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// LayerNorm and biases throughout, attention and MLP in parallel, rotary positions on the first
// part of a head. One tensor interleaves q, k and v of each head. The MLP is a plain GELU unit.
DecoderSpec DescribeGptNeox(const HfConfig& config) {
  DecoderSpec spec;
  ReadCommonFields(config, spec, {.default_activation = "gelu"});
  ReadRotary(config, ReadRotaryDim(config, "rotary_pct", 0.25, spec),
             config.Has("rotary_emb_base") ? "rotary_emb_base" : "rope_theta", spec);
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("layer_norm_eps", 1e-5, {0, 1}));
  spec.norm_bias = true;
  spec.topology =
      config.BoolOr("use_parallel_residual", true) ? Topology::kParallel : Topology::kSequential;
  spec.qkv_layout = QkvLayout::kGrouped;
  spec.qkv_bias = config.BoolOr("attention_bias", true);
  spec.attention_out_bias = spec.qkv_bias;
  spec.mlp.gated = false;
  spec.mlp.bias = true;
  spec.names = {
      .embedding = "gpt_neox.embed_in",
      .final_norm = "gpt_neox.final_layer_norm",
      .head = "embed_out",
      .attention_norm = "gpt_neox.layers.{}.input_layernorm",
      .qkv = "gpt_neox.layers.{}.attention.query_key_value",
      .attention_out = "gpt_neox.layers.{}.attention.dense",
      .mlp_norm = "gpt_neox.layers.{}.post_attention_layernorm",
      .up = "gpt_neox.layers.{}.mlp.dense_h_to_4h",
      .down = "gpt_neox.layers.{}.mlp.dense_4h_to_h",
      .harmless = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"},
  };
  return spec;
}

namespace {

constexpr GgufName kNeoxWhole[] = {{"token_embd", "gpt_neox.embed_in"},
                                   {"output_norm", "gpt_neox.final_layer_norm"},
                                   {"output", "embed_out"}};
constexpr GgufName kNeoxLayers[] = {
    {"attn_norm", "gpt_neox.layers.{}.input_layernorm"},
    {"attn_qkv", "gpt_neox.layers.{}.attention.query_key_value", GgufRows::kUngrouped},
    {"attn_output", "gpt_neox.layers.{}.attention.dense"},
    {"ffn_norm", "gpt_neox.layers.{}.post_attention_layernorm"},
    {"ffn_up", "gpt_neox.layers.{}.mlp.dense_h_to_4h"},
    {"ffn_down", "gpt_neox.layers.{}.mlp.dense_4h_to_h"},
};

void CompleteNeox(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  config["attention_bias"] = shape.qkv_bias;
  config["rotary_pct"] = RotatedPart(metadata, shape);
  config["use_parallel_residual"] =
      metadata.BoolOr(metadata.ArchitectureKey("use_parallel_residual"), true);
}

}  // namespace

const GgufFamily kGptNeoxGguf = {.architecture = "gptneox",
                                 .model_type = "gpt_neox",
                                 .whole = kNeoxWhole,
                                 .layers = kNeoxLayers,
                                 .complete = CompleteNeox};

}  // namespace godwit
