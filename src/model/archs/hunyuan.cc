#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// A rotation whose base is stretched once and for all. The checkpoints call it dynamic. Fields of
// other kinds of scaling stand beside it.
void ReadAlphaRotary(const HfConfig& config, const HfConfig& fields, DecoderSpec& spec) {
  const auto dim = static_cast<double>(spec.head_dim);
  if (spec.head_dim < 4) config.Refuse("head_dim", "4 or more");
  const double stated =
      fields.FloatOr("rope_theta", config.FloatOr("rope_theta", 10000, kThetaRange), kThetaRange);
  const double alpha = fields.Float("alpha", {1e-3, 1e9});
  spec.rotary = {.rotary_dim = spec.head_dim / 2 * 2,
                 .theta = stated * std::pow(alpha, dim / (dim - 2))};
  for (const char* key :
       {"type", "rope_type", "factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) {
    fields.MarkAsRead(key);
  }
}

// Llama with norms of query and key heads, whose gains follow the rotation.
DecoderSpec DescribeHunyuan(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  ExpectBool(config, "use_qk_norm", true, /*fallback=*/true);
  ExpectBool(config, "use_cla", false, /*fallback=*/false);  // layers that share keys and values
  spec.qk_norm = QkNorm::kHeadsThenGains;
  const auto fields = RotaryFields(config);
  if (fields && fields->Has("alpha") &&
      fields->StringOr("rope_type", fields->StringOr("type", "")) == "dynamic") {
    ReadAlphaRotary(config, *fields, spec);
  } else {
    ReadRotary(config, spec.head_dim, "rope_theta", spec);
  }
  if (spec.rotary.scaling.attention_factor != 1) {
    // The norm behind the rotation would undo it.
    config.Refuse("rope_scaling", "a scaling without attention factor", ErrorKind::kUnsupported);
  }
  spec.names.q_norm = "model.layers.{}.self_attn.query_layernorm";
  spec.names.k_norm = "model.layers.{}.self_attn.key_layernorm";
  return spec;
}

// A number of which the config may state one for each layer. All must be `expected`, and 0 stands
// for whatever the first is.
int64_t ReadOfAllLayers(const HfConfig& config, std::string_view key, int64_t expected,
                        IntRange range) {
  const std::vector<int64_t> numbers = config.Ints(key, range);
  if (numbers.empty()) return expected;
  const int64_t first = expected == 0 ? numbers.front() : expected;
  if (std::ranges::count(numbers, first) != std::ssize(numbers)) {
    config.Refuse(key, fmt::format("{} for every layer", first), ErrorKind::kUnsupported);
  }
  return first;
}

}  // namespace

DecoderSpec DescribeHunyuanDense(const HfConfig& config) { return DescribeHunyuan(config); }

// Experts replace the MLP, and one more serves all tokens.
DecoderSpec DescribeHunyuanMoe(const HfConfig& config) {
  DecoderSpec spec = DescribeHunyuan(config);
  ReadOfAllLayers(config, "moe_intermediate_size", spec.mlp.intermediate, kWidthRange);
  ReadOfAllLayers(config, "num_shared_expert", 1, {0, 64});
  spec.shared_mlp = spec.mlp;
  spec.mlp.experts = std::max<int64_t>(1, ReadOfAllLayers(config, "num_experts", 0, kExpertRange));
  spec.mlp.experts_per_token =
      std::max<int64_t>(1, ReadOfAllLayers(config, "moe_topk", 0, {1, spec.mlp.experts}));
  NameExperts(spec.names);
  spec.names.router = "model.layers.{}.mlp.gate.wg";
  spec.names.shared_gate = "model.layers.{}.mlp.shared_mlp.gate_proj";
  spec.names.shared_up = "model.layers.{}.mlp.shared_mlp.up_proj";
  spec.names.shared_down = "model.layers.{}.mlp.shared_mlp.down_proj";
  return spec;
}

namespace {

constexpr GgufName kHunyuanLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.query_layernorm"},
    {"attn_k_norm", "model.layers.{}.self_attn.key_layernorm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.mlp.gate.wg"},
    {"ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj", GgufRows::kExperts},
    {"ffn_gate_shexp", "model.layers.{}.mlp.shared_mlp.gate_proj"},
    {"ffn_up_shexp", "model.layers.{}.mlp.shared_mlp.up_proj"},
    {"ffn_down_shexp", "model.layers.{}.mlp.shared_mlp.down_proj"},
};

// The base of the rotations is stretched in the file.
void CompleteHunyuan(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
}

void CompleteHunyuanMoe(const GgufMetadata& metadata, const GgufShape& shape,
                        nlohmann::json& config) {
  CompleteHunyuan(metadata, shape, config);
  config["num_experts"] = OwnInt(metadata, "expert_count");
  config["moe_topk"] = OwnInt(metadata, "expert_used_count");
  config["moe_intermediate_size"] = OwnInt(metadata, "expert_feed_forward_length");
  config["num_shared_expert"] = SharedExperts(metadata);
}

}  // namespace

const GgufFamily kHunyuanDenseGguf = {.architecture = "hunyuan-dense",
                                      .model_type = "hunyuan_v1_dense",
                                      .layers = kHunyuanLayers,
                                      .complete = CompleteHunyuan};
const GgufFamily kHunyuanMoeGguf = {.architecture = "hunyuan-moe",
                                    .model_type = "hunyuan_v1_moe",
                                    .layers = kHunyuanLayers,
                                    .complete = CompleteHunyuanMoe};

}  // namespace godwit
