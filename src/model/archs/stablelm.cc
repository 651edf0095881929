#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with LayerNorm and rotary positions on a quarter of a head. With use_parallel_residual,
// attention and MLP run in parallel behind one norm.
DecoderSpec DescribeStableLm(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.head_dim = ""});
  ReadRotary(config, ReadRotaryDim(config, "partial_rotary_factor", 0.25, spec), "rope_theta",
             spec);
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("layer_norm_eps", 1e-5, {0, 1}));
  spec.norm_bias = true;
  spec.qkv_bias = config.BoolOr("use_qkv_bias", false);
  if (config.BoolOr("use_parallel_residual", false)) spec.topology = Topology::kParallelSharedNorm;
  if (config.BoolOr("qk_layernorm", false)) {
    spec.qk_norm = QkNorm::kEachHead;
    spec.qk_norm_by_head = true;
    spec.names.q_norm = "model.layers.{}.self_attn.q_layernorm.norms.{}";
    spec.names.k_norm = "model.layers.{}.self_attn.k_layernorm.norms.{}";
  }
  return spec;
}

namespace {

constexpr GgufName kStableLmLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_layernorm.norms.{}", GgufRows::kHeads},
    {"attn_k_norm", "model.layers.{}.self_attn.k_layernorm.norms.{}", GgufRows::kHeads},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};

// Files say use_parallel_residual even of models without it, whose config.json does not.
void CompleteStableLm(const GgufMetadata& metadata, const GgufShape& shape,
                      nlohmann::json& config) {
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
  config["use_qkv_bias"] = shape.qkv_bias;
  config["use_parallel_residual"] = !shape.mlp_norm;
  config["qk_layernorm"] = shape.qk_norm;
}

}  // namespace

const GgufFamily kStableLmGguf = {.architecture = "stablelm",
                                  .model_type = "stablelm",
                                  .layers = kStableLmLayers,
                                  .complete = CompleteStableLm};

}  // namespace godwit
