#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with q, k and v in one tensor, gate and up in another, and LongRoPE on a part of a head.
DecoderSpec DescribePhi3(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config);
  ReadRotary(config, ReadRotaryDim(config, "partial_rotary_factor", 1, spec), "rope_theta", spec);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_layout = QkvLayout::kFused;
  spec.mlp.fused = true;
  ReadStatedWindows(config, spec);
  spec.names.qkv = "model.layers.{}.self_attn.qkv_proj";
  spec.names.up = "model.layers.{}.mlp.gate_up_proj";
  return spec;
}

}  // namespace godwit
