#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama's attention with LayerNorm and biases throughout, a plain GELU unit, a tied head.
DecoderSpec DescribeStarcoder2(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(
      config, {.default_activation = "gelu_pytorch_tanh", .tied_by_default = true});
  ReadRotary(config, spec.head_dim, "rope_theta", spec);
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("norm_epsilon", 1e-5, {0, 1}));
  spec.norm_bias = true;
  spec.qkv_bias = spec.attention_out_bias = spec.mlp.bias = config.BoolOr("use_bias", true);
  spec.mlp.gated = false;
  ReadStatedWindows(config, spec);
  spec.names.up = "model.layers.{}.mlp.c_fc";
  spec.names.down = "model.layers.{}.mlp.c_proj";
  return spec;
}

}  // namespace godwit
