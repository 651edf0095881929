#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// LayerNorm without bias before attention and a gated MLP in parallel. Rotary pairs lie side by
// side. The head is tied, with a factor on its logits.
DecoderSpec DescribeShape(const HfConfig& config, double default_theta) {
  DecoderSpec spec = DescribeLlamaShape(config, {.head_dim = "", .tied_by_default = true});
  ReadRotary(config, spec.head_dim, "rope_theta", spec, default_theta);
  spec.interleaved_rotary = true;
  spec.topology = Topology::kParallelSharedNorm;
  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("layer_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.logit_scale = static_cast<float>(config.FloatOr("logit_scale", 0.0625, {1e-6, 1e6}));
  return spec;
}

}  // namespace

// Command R. R+ has a norm for each head of queries and keys.
DecoderSpec DescribeCohere(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, /*default_theta=*/5e5);
  if (config.BoolOr("use_qk_norm", false)) spec.qk_norm = QkNorm::kEachHead;
  return spec;
}

// Most layers have windows, and only these have positions.
DecoderSpec DescribeCohere2(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, /*default_theta=*/1e4);
  ReadAlternatingWindows(config, config.IntOr("sliding_window_pattern", 4, kLayerRange), spec);
  ChangeLayers(spec, LayersWithoutWindow(spec), [](LayerKind& kind) { kind.rotary = {}; });
  return spec;
}

namespace {

constexpr GgufName kCohereLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};

void CompleteCohere2(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
  if (config.value("logit_scale", nlohmann::json()).is_null()) config["logit_scale"] = 1;
  ReadWindowPattern(metadata, config);
}

void CompleteCohere(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  CompleteCohere2(metadata, shape, config);
  config["use_qk_norm"] = shape.qk_norm;
}

}  // namespace

const GgufFamily kCohereGguf = {.architecture = "command-r",
                                .model_type = "cohere",
                                .layers = kCohereLayers,
                                .complete = CompleteCohere};
const GgufFamily kCohere2Gguf = {.architecture = "cohere2",
                                 .model_type = "cohere2",
                                 .layers = kCohereLayers,
                                 .complete = CompleteCohere2};

}  // namespace godwit
