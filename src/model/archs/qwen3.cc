#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with RMSNorm on every query and key head, and heads of a separately stated width.
DecoderSpec DescribeQwen3(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.qk_norm = QkNorm::kHeads;
  ReadSwitchedWindows(config, spec);
  return spec;
}

}  // namespace godwit
