#include "model/archs/qwen3.h"

#include "model/archs/llama.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with RMSNorm on every query and key head, and heads whose width is stated on its own.
DecoderSpec DescribeQwen3(const HfConfig& config) {
  DecoderSpec spec = DescribeLlama(config);
  spec.mlp.bias = false;
  spec.qk_norm = true;
  if (config.BoolOr("use_sliding_window", false)) {
    ReadWindows(config, config.IntOr("max_window_layers", 28, {0, kLayerRange.max}), spec);
  }
  return spec;
}

}  // namespace godwit
