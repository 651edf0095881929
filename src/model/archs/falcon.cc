#include <cmath>
#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

constexpr CommonKeys kFalconKeys = {.kv_heads = "num_kv_heads",
                                    .head_dim = "",
                                    .intermediate = "",
                                    .activation = "activation",
                                    .default_activation = "gelu",
                                    .tied_by_default = true};
constexpr CommonKeys kFirstKeys = {.layers = "n_layer",
                                   .heads = "n_head",
                                   .kv_heads = "n_head_kv",
                                   .head_dim = "",
                                   .intermediate = "",
                                   .activation = "activation",
                                   .default_activation = "gelu",
                                   .tied_by_default = true};

// The biases are added before the scores are scaled.
ops::Alibi FalconAlibi(int64_t heads, int64_t head_dim) {
  return {.slopes = ops::AlibiSlopes(heads),
          .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
          .in_bf16 = true};
}

// LayerNorm, attention and a plain GELU unit in parallel, and q, k and v in one tensor. Falcon 40B
// ("new decoder architecture") has grouped KV heads and a norm for each of the two blocks. 7B has
// one KV head, so that its tensor is all q, then k, then v, and one norm for both blocks. RW has a
// KV head for every head, ALiBi, biases, and the blocks in sequence.
DecoderSpec Describe(const HfConfig& config, const CommonKeys& keys, bool new_architecture,
                     bool parallel, bool multi_query) {
  DecoderSpec spec;
  ReadCommonFields(config, spec, keys);
  spec.mlp.intermediate = config.IntOr("ffn_hidden_size", 4 * spec.hidden_size, kWidthRange);
  spec.mlp.gated = false;
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("layer_norm_epsilon", 1e-5, {0, 1}));
  spec.norm_bias = true;
  spec.qkv_layout = QkvLayout::kGrouped;
  spec.qkv_bias = spec.attention_out_bias = spec.mlp.bias = config.BoolOr("bias", false);

  const int64_t norms = config.IntOr("num_ln_in_parallel_attn", new_architecture ? 2 : 1, {1, 2});
  if (new_architecture && !parallel) config.Refuse("parallel_attn", "true in the new architecture");
  if (!new_architecture && norms != 1) {
    config.Refuse("num_ln_in_parallel_attn", "1 but in the new architecture");
  }
  if (!new_architecture && multi_query) spec.kv_heads = 1;
  if (!new_architecture && !multi_query && spec.kv_heads != spec.heads) {
    config.Refuse(keys.kv_heads, "one for every head without multi_query");
  }
  spec.topology = !parallel    ? Topology::kSequential
                  : norms == 2 ? Topology::kParallel
                               : Topology::kParallelSharedNorm;

  if (config.BoolOr("alibi", false)) {
    spec.alibi = FalconAlibi(spec.heads, spec.head_dim);
  } else {
    ReadRotary(config, spec.head_dim, "rope_theta", spec);
  }
  const bool own_norms = spec.topology == Topology::kParallel;
  spec.names = {
      .embedding = "transformer.word_embeddings",
      .final_norm = "transformer.ln_f",
      .head = "lm_head",
      .attention_norm = own_norms ? "transformer.h.{}.ln_attn" : "transformer.h.{}.input_layernorm",
      .qkv = "transformer.h.{}.self_attention.query_key_value",
      .attention_out = "transformer.h.{}.self_attention.dense",
      .mlp_norm =
          own_norms ? "transformer.h.{}.ln_mlp" : "transformer.h.{}.post_attention_layernorm",
      .up = "transformer.h.{}.mlp.dense_h_to_4h",
      .down = "transformer.h.{}.mlp.dense_4h_to_h",
  };
  return spec;
}

}  // namespace

DecoderSpec DescribeFalcon(const HfConfig& config) {
  return Describe(config, kFalconKeys, config.BoolOr("new_decoder_architecture", false),
                  config.BoolOr("parallel_attn", true), config.BoolOr("multi_query", true));
}

DecoderSpec DescribeRefinedWebModel(const HfConfig& config) {
  return Describe(config, kFirstKeys, /*new_architecture=*/false,
                  config.BoolOr("parallel_attn", false), config.BoolOr("multi_query", false));
}

DecoderSpec DescribeRefinedWeb(const HfConfig& config) {
  return Describe(config, kFirstKeys, /*new_architecture=*/true,
                  config.BoolOr("parallel_attn", false), /*multi_query=*/false);
}

namespace {

constexpr GgufName kFalconWhole[] = {{"token_embd", "transformer.word_embeddings"},
                                     {"output_norm", "transformer.ln_f"},
                                     {"output", "lm_head"}};
constexpr GgufName kFalconLayers[] = {
    {"attn_norm", "transformer.h.{}.input_layernorm"},
    {"attn_qkv", "transformer.h.{}.self_attention.query_key_value", GgufRows::kUngrouped},
    {"attn_output", "transformer.h.{}.self_attention.dense"},
    {"ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
    {"ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"},
};
constexpr GgufName kFalcon40Layers[] = {
    {"attn_norm", "transformer.h.{}.ln_mlp"},
    {"attn_norm_2", "transformer.h.{}.ln_attn"},
    {"attn_qkv", "transformer.h.{}.self_attention.query_key_value", GgufRows::kUngrouped},
    {"attn_output", "transformer.h.{}.self_attention.dense"},
    {"ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
    {"ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"},
};

void CompleteFalcon(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  const bool new_architecture = shape.kv_heads > 1 || shape.second_attention_norm;
  config["new_decoder_architecture"] = new_architecture;
  config["multi_query"] = !new_architecture;
  config["num_kv_heads"] = shape.kv_heads;
  config["num_ln_in_parallel_attn"] = shape.second_attention_norm ? 2 : 1;
  config["parallel_attn"] = true;
  config["ffn_hidden_size"] = config["intermediate_size"];
  config["bias"] = false;
}

}  // namespace

const GgufFamily kFalcon40Gguf = {.architecture = "falcon",
                                  .model_type = "falcon",
                                  .other_types = {"RefinedWeb", "RefinedWebModel"},
                                  .whole = kFalconWhole,
                                  .layers = kFalcon40Layers,
                                  .second_attention_norm = true,
                                  .complete = CompleteFalcon};
const GgufFamily kFalconGguf = {.architecture = "falcon",
                                .model_type = "falcon",
                                .other_types = {"RefinedWeb", "RefinedWebModel"},
                                .whole = kFalconWhole,
                                .layers = kFalconLayers,
                                .complete = CompleteFalcon};

}  // namespace godwit
