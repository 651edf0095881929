#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with experts in the place of the MLP.
DecoderSpec DescribeMixtral(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config, /*default_theta=*/1e6);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  ReadStatedWindows(config, spec);

  spec.mlp.experts = config.IntOr("num_local_experts", 8, kExpertRange);
  const IntRange known{1, spec.mlp.experts};
  // Of a single expert, the usual two make no sense.
  spec.mlp.experts_per_token = spec.mlp.experts == 1
                                   ? config.Int("num_experts_per_tok", known)
                                   : config.IntOr("num_experts_per_tok", 2, known);
  spec.names.router = "model.layers.{}.block_sparse_moe.gate";
  spec.names.gate = "model.layers.{}.block_sparse_moe.experts.{}.w1";
  spec.names.up = "model.layers.{}.block_sparse_moe.experts.{}.w3";
  spec.names.down = "model.layers.{}.block_sparse_moe.experts.{}.w2";
  return spec;
}

}  // namespace godwit
