#include "base/error.h"
#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// Rows 0 and 1 of the position table were for padding in training.
constexpr int64_t kFirstPosition = 2;

}  // namespace

// LayerNorm and biases throughout, learned positions, a plain ReLU unit, a tied head. OPT 350M has
// its norms after the blocks, none at the end, and narrower embeddings than the model. Galactica
// has GELU, and its larger models have no biases.
DecoderSpec DescribeOpt(const HfConfig& config) {
  DecoderSpec spec;
  ReadCommonFields(config, spec,
                   {.kv_heads = "",
                    .head_dim = "",
                    .intermediate = "ffn_dim",
                    .activation = "activation_function",
                    .default_activation = "relu",
                    .tied_by_default = true});
  spec.first_learned_position = kFirstPosition;
  if (spec.max_context > kVocabRange.max) {
    config.Refuse("max_position_embeddings",
                  fmt::format("at most {}, the rows of the position table", kVocabRange.max));
  }
  const int64_t width = config.IntOr("word_embed_proj_dim", spec.hidden_size, kWidthRange);
  if (width != spec.hidden_size) spec.embedding_size = width;

  const bool pre_norm = config.BoolOr("do_layer_norm_before", true);
  // Checkpoints tuned before transformers 4.20.1 have lost the final norm.
  const bool removed = config.BoolOr("_remove_final_layer_norm", false);
  spec.topology = pre_norm ? Topology::kSequential : Topology::kPostNorm;
  spec.final_norm = pre_norm && !removed;
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = 1e-5f;  // of torch: no field states it
  spec.norm_gain = config.BoolOr("layer_norm_elementwise_affine", true);
  spec.norm_bias = true;

  const bool bias = config.BoolOr("enable_bias", true);
  spec.qkv_bias = spec.attention_out_bias = spec.mlp.bias = bias;
  spec.mlp.gated = false;
  spec.names = {
      .prefix = "model.",
      .embedding = "model.decoder.embed_tokens",
      .positions = "model.decoder.embed_positions",
      .project_in = "model.decoder.project_in",
      .project_out = "model.decoder.project_out",
      .final_norm = "model.decoder.final_layer_norm",
      .head = "lm_head",
      .attention_norm = "model.decoder.layers.{}.self_attn_layer_norm",
      .q = "model.decoder.layers.{}.self_attn.q_proj",
      .k = "model.decoder.layers.{}.self_attn.k_proj",
      .v = "model.decoder.layers.{}.self_attn.v_proj",
      .attention_out = "model.decoder.layers.{}.self_attn.out_proj",
      .mlp_norm = "model.decoder.layers.{}.final_layer_norm",
      .up = "model.decoder.layers.{}.fc1",
      .down = "model.decoder.layers.{}.fc2",
  };
  return spec;
}

}  // namespace godwit
