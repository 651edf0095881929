#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// Norms of queries and keys over all heads. Norms stand behind blocks, not before them.
DecoderSpec DescribeWithOutputNorms(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.input_norms = false;
  spec.output_norms = true;
  spec.qk_norm = QkNorm::kAllHeads;
  spec.names.attention_out_norm = "model.layers.{}.post_attention_layernorm";
  spec.names.mlp_out_norm = "model.layers.{}.post_feedforward_layernorm";
  return spec;
}

}  // namespace

// Llama with a LayerNorm without weights.
DecoderSpec DescribeOlmo(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = 1e-5f;  // no field states it
  spec.norm_gain = false;
  const double clip = config.FloatOr("clip_qkv", 0, {0, 1e6});
  if (clip != 0) spec.clip_qkv = static_cast<float>(clip);
  return spec;
}

DecoderSpec DescribeOlmo2(const HfConfig& config) {
  DecoderSpec spec = DescribeWithOutputNorms(config);
  ReadRotary(config, spec.head_dim, "rope_theta", spec);
  return spec;
}

// OLMo 2 with windows in three of four layers, whose rotation is not stretched.
DecoderSpec DescribeOlmo3(const HfConfig& config) {
  constexpr double kTheta = 5e5;
  DecoderSpec spec = DescribeWithOutputNorms(config);
  ReadAlternatingWindows(config, /*period=*/4, spec);
  ReadRotaryByWindow(config, kTheta, config.FloatOr("rope_theta", kTheta, kThetaRange), spec);
  return spec;
}

}  // namespace godwit
