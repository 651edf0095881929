#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

constexpr CommonKeys kDeepSeekKeys = {.kv_heads = "", .head_dim = "", .default_head_dim = 1};

void ReadLatent(const HfConfig& config, DecoderSpec& spec) {
  LatentAttention latent;
  if (!config.IsNull("q_lora_rank")) {
    latent.query_rank = config.IntOr("q_lora_rank", 1536, kWidthRange);
  }
  latent.rotary_dim = config.IntOr("qk_rope_head_dim", 64, {2, 256}) / 2 * 2;
  latent.kv_rank = config.IntOr("kv_lora_rank", 512, {1, kHeadDimRange.max - latent.rotary_dim});
  latent.plain_dim = config.IntOr("qk_nope_head_dim", 128, kHeadDimRange);
  latent.value_dim = config.IntOr("v_head_dim", 128, kHeadDimRange);
  config.MarkAsRead("num_key_value_heads");  // as many as heads, all made from one vector
  spec.kv_heads = 1;
  spec.head_dim = latent.cached_dim();
  spec.latent = latent;
}

// The factor on scores from stretching the context. The rotations have their own factor.
double ScoreFactor(const HfConfig& config) {
  const auto fields = RotaryFields(config);
  if (!fields) return 1;
  const double all_dim = fields->FloatOr("mscale_all_dim", 0, {0, 100});
  const double magnitude = YarnMagnitude(fields->FloatOr("factor", 1, {1, 1e4}), all_dim);
  return magnitude * magnitude;
}

// Llama with latent attention and experts. Some experts serve all tokens.
DecoderSpec DescribeShape(const HfConfig& config, int64_t experts, int64_t intermediate,
                          int64_t shared) {
  DecoderSpec spec = DescribeLlamaShape(config, kDeepSeekKeys);
  ReadLatent(config, spec);
  ReadRotary(config, spec.latent->rotary_dim, "rope_theta", spec);
  spec.interleaved_rotary = true;
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.score_scale = static_cast<float>(ScoreFactor(config) /
                                        std::sqrt(static_cast<double>(spec.latent->query_dim())));

  spec.mlp.intermediate = config.IntOr("moe_intermediate_size", intermediate, kWidthRange);
  spec.shared_mlp = spec.mlp;
  spec.shared_mlp.intermediate *= config.IntOr("n_shared_experts", shared, {0, 64});
  spec.mlp.experts = config.IntOr("n_routed_experts", experts, kExpertRange);
  if (config.IntOr("moe_layer_freq", 1, kLayerRange) != 1) {
    config.Refuse("moe_layer_freq", "1", ErrorKind::kUnsupported);
  }

  ModuleNames& names = spec.names;
  names.query_down = "model.layers.{}.self_attn.q_a_proj";
  names.query_down_norm = "model.layers.{}.self_attn.q_a_layernorm";
  if (spec.latent->query_rank > 0) names.q = "model.layers.{}.self_attn.q_b_proj";
  names.kv_down = "model.layers.{}.self_attn.kv_a_proj_with_mqa";
  names.kv_down_norm = "model.layers.{}.self_attn.kv_a_layernorm";
  names.kv_up = "model.layers.{}.self_attn.kv_b_proj";
  names.shared_gate = "model.layers.{}.mlp.shared_experts.gate_proj";
  names.shared_up = "model.layers.{}.mlp.shared_experts.up_proj";
  names.shared_down = "model.layers.{}.mlp.shared_experts.down_proj";
  NameExperts(names);
  return spec;
}

// Reads the number of first layers that have one MLP, like the shared one but for its width.
void ReadDenseLayers(const HfConfig& config, int64_t unless_told, DecoderSpec& spec) {
  const int64_t dense = config.IntOr("first_k_dense_replace", unless_told, {0, kLayerRange.max});
  MlpSpec mlp = spec.shared_mlp;
  mlp.intermediate = config.Int("intermediate_size", kWidthRange);
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    if (layer < dense) kind.mlp = mlp;
  });
}

// best: the number of experts whose sum is a group's score.
void ReadGroups(const HfConfig& config, int64_t groups, int64_t chosen, int64_t best,
                DecoderSpec& spec) {
  ops::ExpertChoice& choice = spec.mlp.choice;
  choice.groups = config.IntOr("n_group", groups, {1, ops::kMaxGroups});
  choice.groups_chosen =
      config.IntOr("topk_group", std::min(chosen, choice.groups), {1, choice.groups});
  choice.best_of_group = best;
  const int64_t size = spec.mlp.experts / choice.groups;
  if (spec.mlp.experts % choice.groups != 0 || (choice.groups > 1 && size < best)) {
    config.Refuse("n_group", fmt::format("groups of {} or more of {} experts, all of one size",
                                         best, spec.mlp.experts));
  }
}

void ReadChosen(const HfConfig& config, int64_t per_token, double share_scale, DecoderSpec& spec) {
  ops::ExpertChoice& choice = spec.mlp.choice;
  choice.share_scale =
      static_cast<float>(config.FloatOr("routed_scaling_factor", share_scale, {1e-6, 1e6}));
  ReadExpertsPerToken(config, per_token, spec.mlp.experts / choice.groups * choice.groups_chosen,
                      spec);
}

}  // namespace

// Shares are a softmax over all experts.
DecoderSpec DescribeDeepseekV2(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, /*experts=*/64, /*intermediate=*/1407, /*shared=*/2);
  ExpectString(config, "scoring_func", "softmax", /*fallback=*/"softmax");
  const std::string method = config.StringOr("topk_method", "greedy");
  ExpectOneOf(config, "topk_method", method, {"greedy", "group_limited_greedy"});
  if (method != "greedy") ReadGroups(config, /*groups=*/1, /*chosen=*/1, /*best=*/1, spec);
  ReadChosen(config, /*per_token=*/6, /*share_scale=*/1, spec);
  spec.shared_mlp.bias = config.BoolOr("mlp_bias", false);
  spec.mlp.shares_among_chosen = false;
  if (config.BoolOr("norm_topk_prob", false)) {
    // The model's own code divides here, and transformers does not.
    config.Refuse("norm_topk_prob", "false", ErrorKind::kUnsupported);
  }
  ReadDenseLayers(config, /*unless_told=*/0, spec);
  return spec;
}

// Shares are sigmoids. A bias is added to choose experts.
DecoderSpec DescribeDeepseekV3(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, /*experts=*/256, /*intermediate=*/2048, /*shared=*/1);
  ExpectString(config, "scoring_func", "sigmoid", /*fallback=*/"sigmoid");
  ExpectString(config, "topk_method", "noaux_tc", /*fallback=*/"noaux_tc");
  spec.interleaved_rotary = config.BoolOr("rope_interleave", true);
  ReadGroups(config, /*groups=*/8, /*chosen=*/4, /*best=*/2, spec);
  ReadChosen(config, /*per_token=*/8, /*share_scale=*/2.5, spec);
  spec.mlp.choice.sigmoid = true;
  spec.mlp.choice_bias = true;
  spec.mlp.shares_among_chosen = config.BoolOr("norm_topk_prob", true);
  ReadDenseLayers(config, /*unless_told=*/3, spec);
  spec.names.choice_bias = "model.layers.{}.mlp.gate.e_score_correction_bias";
  // A layer behind the last one predicts one more token.
  spec.names.others = {fmt::format("model.layers.{}.", spec.layers)};
  return spec;
}

}  // namespace godwit
