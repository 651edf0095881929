#include "model/archs/bloom.h"

#include <string>

#include "model/hf_fields.h"

namespace godwit {
namespace {

// The first of two names for a field that is there.
std::string_view Spelled(const HfConfig& config, std::string_view first, std::string_view second) {
  return config.Has(first) ? first : second;
}

void RefuseVariations(const HfConfig& config, const DecoderSpec& spec) {
  if (config.BoolOr("apply_residual_connection_post_layernorm", false)) {
    config.Refuse("apply_residual_connection_post_layernorm", "false");
  }
  if (config.IntOr("n_inner", spec.mlp.intermediate, kWidthRange) != spec.mlp.intermediate) {
    config.Refuse("n_inner", fmt::format("4 times the hidden size, {}", spec.mlp.intermediate));
  }
  for (const std::string_view alias : {"hidden_size", "num_attention_heads", "num_hidden_layers"}) {
    const int64_t value = alias == "hidden_size"           ? spec.hidden_size
                          : alias == "num_attention_heads" ? spec.heads
                                                           : spec.layers;
    if (config.IntOr(alias, value, kWidthRange) != value) {
      config.Refuse(alias, fmt::format("{}, which the field's other name says", value));
    }
  }
}

}  // namespace

// LayerNorm and biases throughout, one LayerNorm more on the embeddings, ALiBi, q, k and v of each
// head interleaved in one tensor, a plain GELU unit (its tanh form), a tied head. The first
// checkpoints spell some fields another way.
DecoderSpec DescribeBloom(const HfConfig& config) {
  DecoderSpec spec;
  ReadCommonFields(config, spec,
                   {.hidden_size = Spelled(config, "n_embed", "hidden_size"),
                    .layers = Spelled(config, "n_layer", "num_hidden_layers"),
                    .heads = Spelled(config, "n_head", "num_attention_heads"),
                    .kv_heads = "",
                    .head_dim = "",
                    .intermediate = "",
                    .max_context = "seq_length",
                    .tied_unless_told = true});
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

}  // namespace godwit
