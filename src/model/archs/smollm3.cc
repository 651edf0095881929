#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with some layers without positions, where keys are scored without rotation.
DecoderSpec DescribeSmolLm3(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.tied_by_default = true});
  ReadRotary(config, spec.head_dim, "rope_theta", spec, /*default_theta=*/2e6);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.mlp.bias = config.BoolOr("mlp_bias", false);
  const std::vector<bool> plain = ReadLayersWithoutPositions(config, spec.layers);
  ChangeLayers(spec, plain, [](LayerKind& kind) { kind.rotary = {}; });
  if (config.BoolOr("use_sliding_window", false) && config.Has("sliding_window")) {
    ReadWindows(config, plain, spec);
  } else {
    config.MarkAsRead("sliding_window");
  }
  return spec;
}

}  // namespace godwit
