#include <iterator>
#include <vector>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// [layers] no_rope_layers, where 1 says that the layer rotates; else all but every fourth do.
std::vector<bool> LayersWithoutPositions(const HfConfig& config, int64_t layers) {
  const int64_t period = config.IntOr("no_rope_layer_interval", 4, kLayerRange);
  const std::vector<int64_t> rotates = config.Ints("no_rope_layers", {0, 1});
  if (!rotates.empty() && std::ssize(rotates) < layers) {
    config.Refuse("no_rope_layers", fmt::format("one entry for each of {} layers", layers));
  }
  std::vector<bool> without;
  for (int64_t i = 0; i < layers; ++i) {
    without.push_back(rotates.empty() ? (i + 1) % period == 0
                                      : rotates[static_cast<size_t>(i)] == 0);
  }
  return without;
}

}  // namespace

// Llama with layers without positions: a query scores their keys by what they are alone.
DecoderSpec DescribeSmolLm3(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.tied_unless_told = true});
  ReadRotary(config, spec.head_dim, "rope_theta", spec, /*default_theta=*/2e6);
  spec.turns_otherwise = LayersWithoutPositions(config, spec.layers);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.mlp.bias = config.BoolOr("mlp_bias", false);
  if (config.BoolOr("use_sliding_window", false) && config.Has("sliding_window")) {
    ReadWindows(config, spec.turns_otherwise, spec);
  } else {
    config.Disregard("sliding_window");
  }
  return spec;
}

}  // namespace godwit
