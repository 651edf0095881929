#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with LayerNorm and rotary positions on a quarter of a head. With use_parallel_residual,
// attention and MLP run in parallel behind one norm.
DecoderSpec DescribeStableLm(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.head_dim = ""});
  ReadRotary(config, ReadRotaryDim(config, "partial_rotary_factor", 0.25, spec), "rope_theta",
             spec);
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("layer_norm_eps", 1e-5, {0, 1}));
  spec.norm_bias = true;
  spec.qkv_bias = config.BoolOr("use_qkv_bias", false);
  if (config.BoolOr("use_parallel_residual", false)) spec.topology = Topology::kParallelSharedNorm;
  if (config.BoolOr("qk_layernorm", false)) {
    spec.qk_norm = QkNorm::kEachHead;
    spec.qk_norm_by_head = true;
    spec.names.q_norm = "model.layers.{}.self_attn.q_layernorm.norms.{}";
    spec.names.k_norm = "model.layers.{}.self_attn.k_layernorm.norms.{}";
  }
  return spec;
}

}  // namespace godwit
