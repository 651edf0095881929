#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// The rotation of a config that states none.
constexpr std::string_view kApertusRope =
    R"({"rope_parameters":{"rope_type":"llama3","rope_theta":12000000,"factor":8,)"
    R"("low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":8192}})";

}  // namespace

// Llama with norms of query and key heads, and an MLP without a gate, whose xIELU has numbers of
// its own in every layer.
DecoderSpec DescribeApertus(const HfConfig& config) {
  ExpectString(config, "hidden_act", "xielu", /*fallback=*/"xielu");
  DecoderSpec spec = DescribeLlamaShape(config, {.activation = ""});
  const bool stated = config.Has("rope_scaling") || config.Has("rope_parameters");
  ReadRotary(stated ? config : HfConfig::Parse(kApertusRope, "apertus"), spec.head_dim,
             "rope_theta", spec, /*default_theta=*/1.2e7);
  if (!stated) spec.rotary.theta = config.FloatOr("rope_theta", spec.rotary.theta, kThetaRange);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.qk_norm = QkNorm::kHeads;
  spec.mlp.gated = false;
  spec.mlp.xielu = true;
  spec.names.attention_norm = "model.layers.{}.attention_layernorm";
  spec.names.mlp_norm = "model.layers.{}.feedforward_layernorm";
  spec.names.xielu = "model.layers.{}.mlp.act_fn";
  return spec;
}

namespace {

constexpr GgufName kApertusLayers[] = {
    {"attn_norm", "model.layers.{}.attention_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.feedforward_layernorm"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};
constexpr GgufName kApertusLists[] = {
    {"xielu.alpha_p", "model.layers.{}.mlp.act_fn.alpha_p"},
    {"xielu.alpha_n", "model.layers.{}.mlp.act_fn.alpha_n"},
    {"xielu.beta", "model.layers.{}.mlp.act_fn.beta", GgufRows::kNumber},
    {"xielu.eps", "model.layers.{}.mlp.act_fn.eps", GgufRows::kNumber},
};

void CompleteApertus(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["head_dim"] = shape.head_dim;
  config["attention_bias"] = shape.qkv_bias;
  // An absent scaling would be the family's own.
  if (config["rope_scaling"].is_null()) config["rope_scaling"] = {{"rope_type", "default"}};
}

}  // namespace

const GgufFamily kApertusGguf = {.architecture = "apertus",
                                 .model_type = "apertus",
                                 .layers = kApertusLayers,
                                 .lists = kApertusLists,
                                 .complete = CompleteApertus};

}  // namespace godwit
