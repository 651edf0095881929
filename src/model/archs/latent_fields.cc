#include "model/archs/latent_fields.h"

#include "model/hf_fields.h"

namespace godwit {

void ReadLatentAttention(const HfConfig& config, const LatentAttention& absent, DecoderSpec& spec) {
  LatentAttention latent;
  if (!config.IsNull("q_lora_rank")) {
    latent.query_rank = config.IntOr("q_lora_rank", absent.query_rank, kWidthRange);
  }
  latent.rotary_dim = config.IntOr("qk_rope_head_dim", absent.rotary_dim, {2, 256}) / 2 * 2;
  latent.kv_rank =
      config.IntOr("kv_lora_rank", absent.kv_rank, {1, kHeadDimRange.max - latent.rotary_dim});
  latent.plain_dim = config.IntOr("qk_nope_head_dim", absent.plain_dim, kHeadDimRange);
  latent.value_dim = config.IntOr("v_head_dim", absent.value_dim, kHeadDimRange);
  // godwit's own field, for GGUF files.
  latent.heads_apart = config.BoolOr("kv_b_is_apart", false);
  config.MarkAsRead("num_key_value_heads");  // as many as heads, all made from one vector
  spec.kv_heads = 1;
  spec.head_dim = latent.cached_dim();
  spec.latent = latent;

  ModuleNames& names = spec.names;
  names.query_down = "model.layers.{}.self_attn.q_a_proj";
  names.query_down_norm = "model.layers.{}.self_attn.q_a_layernorm";
  if (latent.query_rank > 0) names.q = "model.layers.{}.self_attn.q_b_proj";
  names.kv_down = "model.layers.{}.self_attn.kv_a_proj_with_mqa";
  names.kv_down_norm = "model.layers.{}.self_attn.kv_a_layernorm";
  names.kv_up = "model.layers.{}.self_attn.kv_b_proj";
  names.head_keys = "model.layers.{}.self_attn.k_b_proj.{}";
  names.head_values = "model.layers.{}.self_attn.v_b_proj.{}";
}

}  // namespace godwit
