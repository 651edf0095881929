#include <string_view>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

void RefuseVariations(const HfConfig& config) {
  const auto require = [&](std::string_view key, bool value) {
    if (config.BoolOr(key, value) != value) {
      config.Refuse(key, value ? "true" : "false", ErrorKind::kUnsupported);
    }
  };
  require("scale_attn_weights", true);
  require("scale_attn_by_inverse_layer_idx", false);
  require("add_cross_attention", false);
}

}  // namespace

// LayerNorm and biases throughout, learned positions, a plain GELU unit, a tied head. One tensor
// has q, then k, then v. Matrices are stored as [inputs, outputs].
DecoderSpec DescribeGpt2(const HfConfig& config) {
  DecoderSpec spec;
  ReadCommonFields(config, spec,
                   {.hidden_size = "n_embd",
                    .layers = "n_layer",
                    .heads = "n_head",
                    .kv_heads = "",
                    .head_dim = "",
                    .intermediate = "",
                    .max_context = "n_positions",
                    .activation = "activation_function",
                    .default_activation = "gelu_new",
                    .tied_by_default = true});
  RefuseVariations(config);
  spec.first_learned_position = 0;
  if (spec.max_context > kVocabRange.max) {
    config.Refuse("n_positions",
                  fmt::format("at most {}, the rows of the position table", kVocabRange.max));
  }
  spec.transposed = true;
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("layer_norm_epsilon", 1e-5, {0, 1}));
  spec.norm_bias = true;
  spec.qkv_layout = QkvLayout::kFused;
  spec.qkv_bias = spec.attention_out_bias = spec.mlp.bias = true;
  spec.mlp.gated = false;
  spec.mlp.intermediate = config.IntOr("n_inner", 4 * spec.hidden_size, kWidthRange);
  spec.names = {
      .prefix = "transformer.",
      .embedding = "transformer.wte",
      .positions = "transformer.wpe",
      .final_norm = "transformer.ln_f",
      .head = "lm_head",
      .attention_norm = "transformer.h.{}.ln_1",
      .qkv = "transformer.h.{}.attn.c_attn",
      .attention_out = "transformer.h.{}.attn.c_proj",
      .mlp_norm = "transformer.h.{}.ln_2",
      .up = "transformer.h.{}.mlp.c_fc",
      .down = "transformer.h.{}.mlp.c_proj",
      .harmless = {".attn.bias", ".attn.masked_bias"},
  };
  return spec;
}

}  // namespace godwit
