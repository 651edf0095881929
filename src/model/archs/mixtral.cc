#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

namespace {

void NameSparseBlock(ModuleNames& names) {
  names.router = "model.layers.{}.block_sparse_moe.gate";
  names.gate = "model.layers.{}.block_sparse_moe.experts.{}.w1";
  names.up = "model.layers.{}.block_sparse_moe.experts.{}.w3";
  names.down = "model.layers.{}.block_sparse_moe.experts.{}.w2";
}

}  // namespace

// Llama with experts instead of the MLP.
DecoderSpec DescribeMixtral(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config, /*default_theta=*/1e6);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  ReadLocalExperts(config, /*experts=*/8, /*per_token=*/2, spec);
  ReadStatedWindows(config, spec);
  NameSparseBlock(spec.names);
  return spec;
}

// Mixtral with LayerNorm, LongRoPE and shares by SparseMixer, which chooses two experts.
DecoderSpec DescribePhiMoe(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config, /*default_theta=*/1e6);
  spec.norm = ops::NormKind::kLayer;
  spec.norm_bias = true;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.head_bias = config.BoolOr("lm_head_bias", false);
  ReadLocalExperts(config, /*experts=*/16, /*per_token=*/2, spec);
  if (spec.mlp.experts_per_token != 2) {
    config.Refuse("num_experts_per_tok", "2", ErrorKind::kUnsupported);
  }
  const double noise = config.FloatOr("router_jitter_noise", 0.01, {1e-6, 1});
  spec.mlp.choice.near_scores = static_cast<float>(2 * noise);
  ReadStatedWindows(config, spec);
  NameSparseBlock(spec.names);
  return spec;
}

}  // namespace godwit
