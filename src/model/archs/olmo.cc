#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
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

namespace {

constexpr GgufName kOlmoLayers[] = {
    {"attn_q", "model.layers.{}.self_attn.q_proj", GgufRows::kPairedQ},
    {"attn_k", "model.layers.{}.self_attn.k_proj", GgufRows::kPairedK},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};

// No field of config.json has the epsilon of OLMo's norms.
void CompleteOlmo(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  const std::string key = metadata.ArchitectureKey("attention.layer_norm_epsilon");
  const double epsilon = metadata.FloatOr(key, 1e-5, {0, 1});
  if (static_cast<float>(epsilon) != 1e-5f) {
    metadata.Refuse(key, "1e-05", fmt::format("{}", epsilon), ErrorKind::kUnsupported);
  }
  config["attention_bias"] = shape.qkv_bias;
}

// OLMo 3 has OLMo 2's name in GGUF, and windows.
void CompleteOlmo2(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
  if (config.value("sliding_window", nlohmann::json()).is_null()) return;
  config["model_type"] = "olmo3";
  ReadWindowPattern(metadata, config);
  if (config.value("rope_local_base_freq", nlohmann::json()) == config["rope_theta"]) {
    config.erase("rope_local_base_freq");
  }
}

}  // namespace

const GgufFamily kOlmoGguf = {
    .architecture = "olmo", .model_type = "olmo", .layers = kOlmoLayers, .complete = CompleteOlmo};
const GgufFamily kOlmo2Gguf = {.architecture = "olmo2",
                               .model_type = "olmo2",
                               .other_types = {"olmo3"},
                               .layers = kPostNormGgufLayers,
                               .complete = CompleteOlmo2};

}  // namespace godwit
