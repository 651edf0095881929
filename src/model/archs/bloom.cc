#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// `other` is the name of `name` in the first checkpoints.
std::string_view Spelled(const HfConfig& config, std::string_view name, std::string_view other) {
  return !config.Has(name) && config.Has(other) ? other : name;
}

void RefuseVariations(const HfConfig& config, const DecoderSpec& spec) {
  if (config.BoolOr("apply_residual_connection_post_layernorm", false)) {
    config.Refuse("apply_residual_connection_post_layernorm", "false");
  }
  if (config.IntOr("n_inner", spec.mlp.intermediate, kWidthRange) != spec.mlp.intermediate) {
    config.Refuse("n_inner", fmt::format("4 times the hidden size, {}", spec.mlp.intermediate));
  }
  const std::pair<std::string_view, int64_t> others[] = {{"n_embed", spec.hidden_size},
                                                         {"num_attention_heads", spec.heads},
                                                         {"num_hidden_layers", spec.layers}};
  for (const auto& [key, value] : others) {
    if (config.IntOr(key, value, kWidthRange) != value) {
      config.Refuse(key, fmt::format("{}, the value of its other name", value));
    }
  }
}

}  // namespace

// LayerNorm and biases throughout, one more LayerNorm on the embeddings, and ALiBi. One tensor
// interleaves q, k and v of each head. The MLP is a plain GELU unit (its tanh form), and the head
// is tied. The first checkpoints spell some fields differently.
DecoderSpec DescribeBloom(const HfConfig& config) {
  DecoderSpec spec;
  ReadCommonFields(config, spec,
                   {.hidden_size = Spelled(config, "hidden_size", "n_embed"),
                    .layers = Spelled(config, "n_layer", "num_hidden_layers"),
                    .heads = Spelled(config, "n_head", "num_attention_heads"),
                    .kv_heads = "",
                    .head_dim = "",
                    .intermediate = "",
                    .max_context = "seq_length",
                    .activation = "",
                    .tied_by_default = true});
  spec.alibi.slopes = ops::AlibiSlopes(spec.heads);
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("layer_norm_epsilon", 1e-5, {0, 1}));
  spec.norm_bias = true;
  spec.embedding_norm = true;
  spec.qkv_layout = QkvLayout::kGrouped;
  spec.qkv_bias = spec.attention_out_bias = spec.mlp.bias = true;
  spec.mlp.gated = false;
  spec.mlp.activation = ops::Activation::kGeluTanh;
  spec.mlp.intermediate = 4 * spec.hidden_size;
  RefuseVariations(config, spec);
  spec.names = {
      .prefix = "transformer.",
      .embedding = "transformer.word_embeddings",
      .embedding_norm = "transformer.word_embeddings_layernorm",
      .final_norm = "transformer.ln_f",
      .head = "lm_head",
      .attention_norm = "transformer.h.{}.input_layernorm",
      .qkv = "transformer.h.{}.self_attention.query_key_value",
      .attention_out = "transformer.h.{}.self_attention.dense",
      .mlp_norm = "transformer.h.{}.post_attention_layernorm",
      .up = "transformer.h.{}.mlp.dense_h_to_4h",
      .down = "transformer.h.{}.mlp.dense_4h_to_h",
  };
  return spec;
}

namespace {

constexpr GgufName kBloomWhole[] = {{"token_embd", "transformer.word_embeddings"},
                                    {"token_embd_norm", "transformer.word_embeddings_layernorm"},
                                    {"output_norm", "transformer.ln_f"},
                                    {"output", "lm_head"}};
constexpr GgufName kBloomLayers[] = {
    {"attn_norm", "transformer.h.{}.input_layernorm"},
    {"attn_qkv", "transformer.h.{}.self_attention.query_key_value", GgufRows::kUngrouped},
    {"attn_output", "transformer.h.{}.self_attention.dense"},
    {"ffn_norm", "transformer.h.{}.post_attention_layernorm"},
    {"ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
    {"ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"},
};

void CompleteBloom(const GgufMetadata& /*metadata*/, const GgufShape& shape,
                   nlohmann::json& config) {
  config["n_layer"] = config["num_hidden_layers"];
  config["n_head"] = shape.heads;
  config["seq_length"] = config["max_position_embeddings"];
  config["n_inner"] = config["intermediate_size"];
}

}  // namespace

const GgufFamily kBloomGguf = {.architecture = "bloom",
                               .model_type = "bloom",
                               .whole = kBloomWhole,
                               .layers = kBloomLayers,
                               .complete = CompleteBloom};

}  // namespace godwit
