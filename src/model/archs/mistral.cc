#include "model/archs/mistral.h"

#include "model/archs/llama.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with a sliding window in every layer.
DecoderSpec DescribeMistral(const HfConfig& config) {
  DecoderSpec spec = DescribeLlama(config);
  spec.qkv_bias = false;
  spec.attention_out_bias = false;
  spec.mlp.bias = false;
  ReadWindows(config, /*first_windowed=*/0, spec);
  return spec;
}

}  // namespace godwit
