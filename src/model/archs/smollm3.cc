#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with some layers without positions, where keys are scored without rotation.
DecoderSpec DescribeSmolLm3(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.tied_by_default = true});
  ReadRotary(config, spec.head_dim, "rope_theta", spec, /*default_theta=*/2e6);
  spec.uses_other_rotary = ReadLayersWithoutPositions(config, spec.layers);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.mlp.bias = config.BoolOr("mlp_bias", false);
  if (config.BoolOr("use_sliding_window", false) && config.Has("sliding_window")) {
    ReadWindows(config, spec.uses_other_rotary, spec);
  } else {
    config.MarkAsRead("sliding_window");
  }
  return spec;
}

}  // namespace godwit
