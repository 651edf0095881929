#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with biases on q, k and v only, and a sliding window in the upper layers if switched on.
DecoderSpec DescribeQwen2(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.qkv_bias = true;
  ReadSwitchedWindows(config, spec);
  return spec;
}

}  // namespace godwit
