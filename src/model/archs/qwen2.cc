#include "model/archs/qwen2.h"

#include "model/archs/llama.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with biases on q, k and v only, and a sliding window in the upper layers if switched on.
DecoderSpec DescribeQwen2(const HfConfig& config) {
  DecoderSpec spec = DescribeLlama(config);
  spec.qkv_bias = true;
  spec.attention_out_bias = false;
  spec.mlp.bias = false;
  if (config.BoolOr("use_sliding_window", false)) {
    ReadWindows(config, config.IntOr("max_window_layers", 28, {0, kLayerRange.max}), spec);
  }
  return spec;
}

}  // namespace godwit
