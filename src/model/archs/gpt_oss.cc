#include <nlohmann/json.hpp>
#include <string_view>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// The rotation of a config that states none. All published models state one.
constexpr std::string_view kGptOssRope =
    R"({"rope_parameters":{"rope_type":"yarn","factor":32,"beta_fast":32,"beta_slow":1,)"
    R"("truncate":false,"original_max_position_embeddings":4096}})";

}  // namespace

// Llama with windows in every other layer, learned sinks, biases, and experts with a clamped unit.
DecoderSpec DescribeGptOss(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.default_head_dim = 64});
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", true);
  spec.attention_sink = AttentionSink::kLearned;

  const bool stated = config.Has("rope_scaling") || config.Has("rope_parameters");
  const int64_t context = spec.max_context;  // includes the scaling
  ReadRotary(stated ? config : HfConfig::Parse(kGptOssRope, "gpt_oss"), spec.head_dim, "rope_theta",
             spec, /*default_theta=*/150000);
  if (!stated) spec.rotary.theta = config.FloatOr("rope_theta", spec.rotary.theta, kThetaRange);
  spec.max_context = context;

  ReadLocalExperts(config, /*experts=*/128, /*per_token=*/4, spec);
  spec.mlp.bias = spec.mlp.router_bias = true;
  spec.mlp.fused = spec.mlp.alternating = true;
  spec.mlp.stacked = spec.mlp.transposed = true;
  spec.mlp.clamped = ops::ClampedSwiglu{
      .alpha = static_cast<float>(config.FloatOr("swiglu_alpha", 1.702, {1e-3, 1e3})),
      .limit = static_cast<float>(config.FloatOr("swiglu_limit", 7, {1e-3, 1e6}))};
  ReadAlternatingWindows(config, /*period=*/2, spec, /*default_window=*/128);

  ModuleNames& names = spec.names;
  names.sinks = "model.layers.{}.self_attn.sinks";
  names.router = "model.layers.{}.mlp.router";
  names.up = "model.layers.{}.mlp.experts.gate_up_proj";
  names.down = "model.layers.{}.mlp.experts.down_proj";
  names.per_expert_gate = "model.layers.{}.mlp.experts.{}.gate_proj";
  names.per_expert_up = "model.layers.{}.mlp.experts.{}.up_proj";
  names.per_expert_down = "model.layers.{}.mlp.experts.{}.down_proj";
  names.expert_weight = "";
  names.expert_bias = "_bias";
  return spec;
}

namespace {

constexpr GgufName kGptOssLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"attn_sinks", "model.layers.{}.self_attn.sinks", GgufRows::kAsTheyWere, ".weight"},
    {"post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate_inp", "model.layers.{}.mlp.router"},
    {"ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj", GgufRows::kExperts},
};

// No key has the limits of its unit, which all published models share, and none the ramp of its
// YaRN, which is not cut off.
void CompleteGptOss(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["head_dim"] = shape.head_dim;
  config["attention_bias"] = shape.qkv_bias;
  config["num_local_experts"] = OwnInt(metadata, "expert_count");
  config["num_experts_per_tok"] = OwnInt(metadata, "expert_used_count");
  config["intermediate_size"] = OwnInt(metadata, "expert_feed_forward_length");
  nlohmann::json& scaling = config["rope_scaling"];
  if (scaling.is_null()) {
    scaling = {{"rope_type", "default"}};
  } else if (scaling["rope_type"] == "yarn") {
    scaling["truncate"] = false;
  }
  ReadWindowPattern(metadata, config);
}

}  // namespace

const GgufFamily kGptOssGguf = {.architecture = "gpt-oss",
                                .model_type = "gpt_oss",
                                .layers = kGptOssLayers,
                                .complete = CompleteGptOss};

}  // namespace godwit
