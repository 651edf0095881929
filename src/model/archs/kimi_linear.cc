#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/archs/deepseek_experts.h"
#include "model/archs/families.h"
#include "model/archs/latent_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

constexpr CommonKeys kKimiKeys = {
    .kv_heads = "", .head_dim = "", .max_context = "model_max_length", .default_head_dim = 1};
constexpr std::string_view kRecurrentFields = "linear_attn_config";

// Heads of recurrent layers, of which each has keys and values of one size. Published files state
// them in an object, and transformers beside all others.
void ReadDeltaHeads(const HfConfig& config, DecoderSpec& spec) {
  const auto object = config.Object(kRecurrentFields);
  const auto number = [&](std::string_view inner, std::string_view outer, int64_t fallback,
                          IntRange range) {
    const int64_t stated = config.IntOr(outer, fallback, range);
    return object ? object->IntOr(inner, stated, range) : stated;
  };
  constexpr IntRange kTaps = {1, ShortConvolutionSpec::kMostTaps};
  const int64_t dim = number("head_dim", "linear_head_dim", 128, kHeadDimRange);
  const int64_t heads = number("num_heads", "linear_num_heads", 32, kHeadRange);
  spec.delta = {
      .shape = {.key_heads = heads,
                .value_heads = heads,
                .key_dim = dim,
                .value_dim = dim,
                .taps = number("short_conv_kernel_size", "linear_conv_kernel_dim", 4, kTaps),
                .channel_decays = true},
      .inputs_apart = true,
      .narrow = dim,
      .sigmoid_gate = true};
}

// The [layers] that are recurrent: as layer_types or two lists of numbers from 1 on say, which
// together have every layer once. Otherwise every fourth but the first has attention.
std::vector<bool> RecurrentLayers(const HfConfig& config, int64_t layers) {
  std::vector<bool> recurrent;
  for (int64_t i = 0; i < layers; ++i) recurrent.push_back(i == 0 || i % 4 != 0);
  const auto object = config.Object(kRecurrentFields);
  if (!object || !object->Has("full_attn_layers") || !object->Has("kda_layers")) {
    return ReadLayersOfType(config, "linear_attention", recurrent);
  }
  std::vector<int> times(layers);
  for (const std::string_view key : {"full_attn_layers", "kda_layers"}) {
    for (const int64_t number : object->Ints(key, {1, layers})) {
      ++times[number - 1];
      recurrent[number - 1] = key == "kda_layers";
    }
  }
  for (int64_t i = 0; i < layers; ++i) {
    if (times[i] == 1) continue;
    object->Refuse("kda_layers", fmt::format("each of {} layers once, there or in "
                                             "full_attn_layers, counted from 1, but layer {} is "
                                             "in {}",
                                             layers, i + 1, times[i] == 0 ? "neither" : "both"));
  }
  return ReadLayersOfType(config, "linear_attention", recurrent);
}

// DeepSeek V3's experts by other names.
void ReadKimiExperts(const HfConfig& config, DecoderSpec& spec) {
  MlpSpec& mlp = spec.mlp;
  spec.shared_mlp = mlp;
  mlp.intermediate = config.IntOr("moe_intermediate_size", 1024, kWidthRange);
  spec.shared_mlp.intermediate = mlp.intermediate * config.IntOr("num_shared_experts", 1, {1, 64});
  mlp.experts = config.IntOr("num_experts", 256, kExpertRange);
  ExpectString(config, "moe_router_activation_func", "sigmoid", /*fallback=*/"sigmoid");
  const int64_t groups = config.IntOr("num_expert_group", 1, {1, ops::kMaxGroups});
  if (mlp.experts % groups != 0 || (groups > 1 && mlp.experts / groups < 2)) {
    config.Refuse("num_expert_group",
                  fmt::format("groups of 2 or more of {} experts, all of one size", mlp.experts));
  }
  if (groups > 1) ExpectBool(config, "use_grouped_topk", true, /*fallback=*/true);
  const double scale = config.FloatOr("routed_scaling_factor", 2.446, {1e-6, 1e6});
  mlp.choice = {.score = ops::ExpertScore::kSigmoid,
                .groups = groups,
                .groups_chosen = config.IntOr("topk_group", 1, {1, groups}),
                .best_of_group = 2,
                .share_scale = static_cast<float>(scale)};
  mlp.choice_bias = true;
  mlp.shares_among_chosen = config.BoolOr("moe_renormalize", true);
  ReadExpertsPerToken(config, /*per_token=*/8, mlp.experts / groups * mlp.choice.groups_chosen,
                      spec, "num_experts_per_token");
  if (config.IntOr("moe_layer_freq", 1, kLayerRange) != 1) {
    config.Refuse("moe_layer_freq", "1", ErrorKind::kUnsupported);
  }
  ModuleNames& names = spec.names;
  NameExperts(names);
  names.router = "model.layers.{}.block_sparse_moe.gate";
  names.choice_bias = "model.layers.{}.block_sparse_moe.gate.e_score_correction_bias";
  names.gate = "model.layers.{}.block_sparse_moe.experts.{}.w1";
  names.up = "model.layers.{}.block_sparse_moe.experts.{}.w3";
  names.down = "model.layers.{}.block_sparse_moe.experts.{}.w2";
  names.shared_gate = "model.layers.{}.block_sparse_moe.shared_experts.gate_proj";
  names.shared_up = "model.layers.{}.block_sparse_moe.shared_experts.up_proj";
  names.shared_down = "model.layers.{}.block_sparse_moe.shared_experts.down_proj";
}

void NameDelta(ModuleNames& names) {
  names.delta_inputs = {names.q, names.k, names.v};
  names.delta_convolutions = {"model.layers.{}.self_attn.q_conv1d",
                              "model.layers.{}.self_attn.k_conv1d",
                              "model.layers.{}.self_attn.v_conv1d"};
  names.delta_update = "model.layers.{}.self_attn.b_proj";
  names.delta_decay_down = "model.layers.{}.self_attn.f_a_proj";
  names.delta_decay = "model.layers.{}.self_attn.f_b_proj";
  names.delta_z_down = "model.layers.{}.self_attn.g_a_proj";
  names.delta_z = "model.layers.{}.self_attn.g_b_proj";
  names.decay_rates = "model.layers.{}.self_attn.A_log";
  names.decay_biases = "model.layers.{}.self_attn.dt_bias";
  names.mixer_norm = "model.layers.{}.self_attn.o_norm";
  names.mixer_out = names.attention_out;
}

}  // namespace

// Kimi Delta Attention (arXiv 2510.26692) in most layers, latent attention without positions in the
// others, and DeepSeek V3's experts.
DecoderSpec DescribeKimiLinear(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, kKimiKeys);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  if (spec.mlp.activation != ops::Activation::kSilu) {
    config.Refuse("hidden_act", "silu, which convolutions of recurrent layers have",
                  ErrorKind::kUnsupported);
  }
  NameDelta(spec.names);
  ReadDeltaHeads(config, spec);
  ReadLatentAttention(config,
                      {.kv_rank = 512, .plain_dim = 128, .rotary_dim = 64, .value_dim = 128}, spec);
  config.MarkAsRead("head_dim");  // of no head in these layers
  ExpectBool(config, "mla_use_nope", true, /*fallback=*/true);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.score_scale = 1 / std::sqrt(static_cast<float>(spec.latent->query_dim()));
  ReadKimiExperts(config, spec);
  ReadDenseLayers(config, {.dense_layers = 1, .layers_by_type = true}, spec);
  ChangeLayers(spec, RecurrentLayers(config, spec.layers),
               [](LayerKind& kind) { kind.mixer = Mixer::kGatedDeltaNet; });
  return spec;
}

}  // namespace godwit
