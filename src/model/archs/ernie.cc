#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// Llama with rotary pairs side by side, one switch for all biases, and a tied head.
DecoderSpec DescribeErnieShape(const HfConfig& config, int64_t default_head_dim) {
  DecoderSpec spec =
      DescribeLlamaShape(config, {.tied_by_default = true, .default_head_dim = default_head_dim});
  ReadRotary(config, spec.head_dim, "rope_theta", spec, /*default_theta=*/5e5);
  spec.interleaved_rotary = true;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = spec.mlp.bias = config.BoolOr("use_bias", false);
  return spec;
}

// Layers from one index to another, every so many of them, have experts.
std::vector<bool> ReadLayersWithExperts(const HfConfig& config, int64_t layers) {
  const int64_t first = config.IntOr("moe_layer_start_index", 1, {0, kLayerRange.max});
  const int64_t stated = config.IntOr("moe_layer_end_index", -1, {-1, kLayerRange.max});
  const int64_t last = stated == -1 ? layers - 1 : stated;
  const int64_t period = config.IntOr("moe_layer_interval", 1, kLayerRange);
  std::vector<bool> with;
  for (int64_t i = 0; i < layers; ++i) {
    with.push_back((i + 1) % period == 0 && first <= i && i <= last);
  }
  return with;
}

}  // namespace

DecoderSpec DescribeErnie45(const HfConfig& config) {
  return DescribeErnieShape(config, config.IsNull("head_dim") ? 0 : 128);
}

// Some experts serve all tokens. Others are chosen by their parts of the softmax, with a bias.
DecoderSpec DescribeErnie45Moe(const HfConfig& config) {
  DecoderSpec spec = DescribeErnieShape(config, /*default_head_dim=*/0);
  // Biases of experts and of the head would come with it.
  ExpectBool(config, "use_bias", false, /*fallback=*/false);
  const MlpSpec dense = spec.mlp;
  spec.mlp.intermediate = config.IntOr("moe_intermediate_size", 1536, kWidthRange);
  spec.shared_mlp = spec.mlp;
  spec.shared_mlp.intermediate *= config.IntOr("moe_num_shared_experts", 2, {0, 64});
  spec.mlp.experts = config.IntOr("moe_num_experts", 64, kExpertRange);
  ReadExpertsPerToken(config, /*per_token=*/6, spec.mlp.experts, spec, "moe_k");
  config.MarkAsRead("moe_norm_min");  // a bound far below any sum of shares
  spec.mlp.choice.score = ops::ExpertScore::kPart;
  spec.mlp.choice_bias = true;
  std::vector<bool> without = ReadLayersWithExperts(config, spec.layers);
  without.flip();
  ChangeLayers(spec, without, [&](LayerKind& kind) { kind.mlp = dense; });

  ModuleNames& names = spec.names;
  names.shared_gate = "model.layers.{}.mlp.shared_experts.gate_proj";
  names.shared_up = "model.layers.{}.mlp.shared_experts.up_proj";
  names.shared_down = "model.layers.{}.mlp.shared_experts.down_proj";
  NameExperts(names);
  names.choice_bias = "model.layers.{}.mlp.moe_statics.e_score_correction_bias";
  names.others = {"model.mtp_"};  // layers that predict more tokens
  return spec;
}

namespace {

constexpr GgufName kErnieLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"exp_probs_b", "model.layers.{}.mlp.moe_statics.e_score_correction_bias",
     GgufRows::kAsTheyWere, ".bias"},
    {"ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj", GgufRows::kExperts},
    {"ffn_gate_shexp", "model.layers.{}.mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "model.layers.{}.mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "model.layers.{}.mlp.shared_experts.down_proj"},
};

void CompleteErnie(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["head_dim"] = shape.head_dim;
  config["use_bias"] = shape.qkv_bias;
}

void CompleteErnieMoe(const GgufMetadata& metadata, const GgufShape& shape,
                      nlohmann::json& config) {
  CompleteErnie(metadata, shape, config);
  config["moe_num_experts"] = OwnInt(metadata, "expert_count");
  config["moe_k"] = OwnInt(metadata, "expert_used_count");
  config["moe_intermediate_size"] = OwnInt(metadata, "expert_feed_forward_length");
  config["moe_num_shared_experts"] = SharedExperts(metadata);
  config["moe_layer_start_index"] = OwnIntOr(metadata, "leading_dense_block_count", 0);
  config["moe_layer_interval"] = OwnIntOr(metadata, "interleave_moe_layer_step", 1);
}

}  // namespace

const GgufFamily kErnieGguf = {.architecture = "ernie4_5",
                               .model_type = "ernie4_5",
                               .layers = kErnieLayers,
                               .complete = CompleteErnie};
const GgufFamily kErnieMoeGguf = {.architecture = "ernie4_5-moe",
                                  .model_type = "ernie4_5_moe",
                                  .layers = kErnieLayers,
                                  .complete = CompleteErnieMoe};

}  // namespace godwit
