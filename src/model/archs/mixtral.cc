#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with experts instead of the MLP.
DecoderSpec DescribeMixtral(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config, /*default_theta=*/1e6);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  ReadLocalExperts(config, /*experts=*/8, /*per_token=*/2, spec);
  ReadStatedWindows(config, spec);
  spec.names.router = "model.layers.{}.block_sparse_moe.gate";
  spec.names.gate = "model.layers.{}.block_sparse_moe.experts.{}.w1";
  spec.names.up = "model.layers.{}.block_sparse_moe.experts.{}.w3";
  spec.names.down = "model.layers.{}.block_sparse_moe.experts.{}.w2";
  return spec;
}

}  // namespace godwit
