#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with q, k and v in one tensor, gate and up in another, and LongRoPE on a part of a head.
DecoderSpec DescribePhi3(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config);
  ReadRotary(config, ReadRotaryDim(config, "partial_rotary_factor", 1, spec), "rope_theta", spec);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_layout = QkvLayout::kFused;
  spec.mlp.fused = true;
  ReadStatedWindows(config, spec);
  spec.names.qkv = "model.layers.{}.self_attn.qkv_proj";
  spec.names.up = "model.layers.{}.mlp.gate_up_proj";
  return spec;
}

namespace {

constexpr GgufName kPhi3Layers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_up", "model.layers.{}.mlp.gate_up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};

void CompletePhi3(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
}

}  // namespace

const GgufFamily kPhi3Gguf = {
    .architecture = "phi3", .model_type = "phi3", .layers = kPhi3Layers, .complete = CompletePhi3};

}  // namespace godwit
