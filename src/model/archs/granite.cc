#include <string_view>

#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

float Factor(const HfConfig& config, std::string_view key) {
  return static_cast<float>(config.FloatOr(key, 1, {1e-6, 1e6}));
}

// Factors on embeddings, scores, residual branches and logits.
DecoderSpec DescribeWithFactors(const HfConfig& config, DecoderSpec spec) {
  spec.embedding_scale = Factor(config, "embedding_multiplier");
  spec.residual_scale = Factor(config, "residual_multiplier");
  spec.score_scale = Factor(config, "attention_multiplier");
  spec.logit_scale = 1 / Factor(config, "logits_scaling");
  return spec;
}

// godwit's own field for checkpoints with separate tensors for gate and up, and for the matrices of
// each expert.
bool GateIsApart(const HfConfig& config) { return config.BoolOr("gate_is_apart", false); }

}  // namespace

// Llama with the factors of Granite.
DecoderSpec DescribeGranite(const HfConfig& config) {
  return DescribeWithFactors(config, DescribeLlama(config));
}

// Experts replace the MLP. One tensor holds all experts of a layer.
DecoderSpec DescribeGraniteMoe(const HfConfig& config) {
  DecoderSpec spec = DescribeWithFactors(config, DescribeLlamaLike(config));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  ReadLocalExperts(config, /*experts=*/8, /*per_token=*/2, spec);
  spec.mlp.fused = spec.mlp.stacked = true;
  spec.names.router = "model.layers.{}.block_sparse_moe.router.layer";
  spec.names.up = "model.layers.{}.block_sparse_moe.input_linear";
  spec.names.down = "model.layers.{}.block_sparse_moe.output_linear";
  // vLLM's names, as for Mixtral.
  spec.names.per_expert_gate = "model.layers.{}.block_sparse_moe.experts.{}.w1";
  spec.names.per_expert_up = "model.layers.{}.block_sparse_moe.experts.{}.w3";
  spec.names.per_expert_down = "model.layers.{}.block_sparse_moe.experts.{}.w2";
  if (GateIsApart(config)) {
    spec.mlp.fused = spec.mlp.stacked = false;
    spec.names.gate = "model.layers.{}.block_sparse_moe.experts.{}.gate_proj";
    spec.names.up = "model.layers.{}.block_sparse_moe.experts.{}.up_proj";
    spec.names.down = "model.layers.{}.block_sparse_moe.experts.{}.down_proj";
  }
  return spec;
}

// GraniteMoe with an additional MLP for every token.
DecoderSpec DescribeGraniteMoeShared(const HfConfig& config) {
  DecoderSpec spec = DescribeGraniteMoe(config);
  spec.shared_mlp = {
      .activation = spec.mlp.activation,
      .intermediate = config.IntOr("shared_intermediate_size", 0, {0, kWidthRange.max}),
      .fused = true};
  spec.names.shared_up = "model.layers.{}.shared_mlp.input_linear";
  spec.names.shared_down = "model.layers.{}.shared_mlp.output_linear";
  if (GateIsApart(config)) {
    spec.shared_mlp.fused = false;
    spec.names.shared_gate = "model.layers.{}.shared_mlp.gate_proj";
    spec.names.shared_up = "model.layers.{}.shared_mlp.up_proj";
    spec.names.shared_down = "model.layers.{}.shared_mlp.down_proj";
  }
  return spec;
}

}  // namespace godwit
