#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// Llama with short convolutions in most layers, and norms of queries and keys.
// intermediate: the key of the MLP's width.
DecoderSpec DescribeShape(const HfConfig& config, std::string_view intermediate) {
  DecoderSpec spec = DescribeLlamaShape(
      config, {.intermediate = intermediate, .activation = "", .tied_by_default = true});
  spec.mlp.activation = ops::Activation::kSilu;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("norm_eps", 1e-5, {0, 1}));
  spec.qk_norm = QkNorm::kHeads;
  spec.tied_head = config.BoolOr("tie_embedding", spec.tied_head);
  ReadRotary(config, spec.head_dim, "rope_theta", spec, /*default_theta=*/1e6);
  spec.convolution = {.width = spec.hidden_size,
                      .taps = config.IntOr("conv_L_cache", 3, {1, ShortConvolutionSpec::kMostTaps}),
                      .bias = config.BoolOr("conv_bias", false)};
  ModuleNames& names = spec.names;
  names.final_norm = "model.embedding_norm";
  names.attention_norm = "model.layers.{}.operator_norm";
  names.mlp_norm = "model.layers.{}.ffn_norm";
  names.q_norm = "model.layers.{}.self_attn.q_layernorm";
  names.k_norm = "model.layers.{}.self_attn.k_layernorm";
  names.attention_out = "model.layers.{}.self_attn.out_proj";
  names.mixer_in = "model.layers.{}.conv.in_proj";
  names.mixer_out = "model.layers.{}.conv.out_proj";
  names.convolution = "model.layers.{}.conv.conv";
  names.gate = "model.layers.{}.feed_forward.w1";
  names.up = "model.layers.{}.feed_forward.w3";
  names.down = "model.layers.{}.feed_forward.w2";
  return spec;
}

// The layers [layers] that mix tokens by a convolution.
std::vector<bool> ConvolutionLayers(const HfConfig& config, int64_t layers) {
  std::vector<bool> convolutions(layers, config.Has("full_attn_idxs"));
  for (const int64_t layer : config.Ints("full_attn_idxs", {0, layers - 1})) {
    convolutions[layer] = false;
  }
  return ReadLayersOfType(config, "conv", convolutions);
}

void SetConvolutions(const HfConfig& config, DecoderSpec& spec) {
  ChangeLayers(spec, ConvolutionLayers(config, spec.layers),
               [](LayerKind& kind) { kind.mixer = Mixer::kShortConvolution; });
}

}  // namespace

// The width of the MLP is two thirds of the stated one, times a factor, rounded up.
DecoderSpec DescribeLfm2(const HfConfig& config) {
  DecoderSpec spec =
      DescribeShape(config, config.Has("block_ff_dim") ? "block_ff_dim" : "intermediate_size");
  int64_t& width = spec.mlp.intermediate;
  if (config.BoolOr("block_auto_adjust_ff_dim", true)) {
    width = 2 * width / 3;
    const double factor = config.FloatOr("block_ffn_dim_multiplier", 1, {0.01, 100});
    const int64_t multiple = config.IntOr("block_multiple_of", 256, kWidthRange);
    width = static_cast<int64_t>(factor * static_cast<double>(width));
    width = (width + multiple - 1) / multiple * multiple;
  }
  SetConvolutions(config, spec);
  return spec;
}

// Experts behind the first layers. Shares are sigmoids, and a bias is added to choose experts.
DecoderSpec DescribeLfm2Moe(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, "intermediate_size");
  const MlpSpec dense = spec.mlp;
  MlpSpec& mlp = spec.mlp;
  mlp.intermediate = config.IntOr("moe_intermediate_size", 1792, kWidthRange);
  mlp.experts = config.IntOr("num_experts", 32, kExpertRange);
  mlp.shares_among_chosen = config.BoolOr("norm_topk_prob", true);
  mlp.choice_bias = config.BoolOr("use_expert_bias", true);
  mlp.choice = {
      .score = ops::ExpertScore::kSigmoid,
      .share_scale = static_cast<float>(config.FloatOr("routed_scaling_factor", 1, {1e-6, 1e6})),
      .share_epsilon = 1e-6f};
  ReadExpertsPerToken(config, /*per_token=*/4, mlp.experts, spec);
  ModuleNames& names = spec.names;
  names.dense_gate = names.gate;
  names.dense_up = names.up;
  names.dense_down = names.down;
  names.router = "model.layers.{}.feed_forward.gate";
  names.choice_bias = "model.layers.{}.feed_forward.expert_bias";
  names.gate = "model.layers.{}.feed_forward.experts.{}.w1";
  names.up = "model.layers.{}.feed_forward.experts.{}.w3";
  names.down = "model.layers.{}.feed_forward.experts.{}.w2";
  const int64_t first = config.IntOr("num_dense_layers", 2, {0, kLayerRange.max});
  SetConvolutions(config, spec);
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    if (layer < first) kind.mlp = dense;
  });
  return spec;
}

namespace {

constexpr GgufName kLfm2Whole[] = {{"token_embd", "model.embed_tokens"},
                                   {"token_embd_norm", "model.embedding_norm"},
                                   {"output", "lm_head"}};
constexpr GgufName kLfm2Layers[] = {
    {"attn_norm", "model.layers.{}.operator_norm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_layernorm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_layernorm"},
    {"attn_output", "model.layers.{}.self_attn.out_proj"},
    {"shortconv.in_proj", "model.layers.{}.conv.in_proj"},
    {"shortconv.conv", "model.layers.{}.conv.conv", GgufRows::kTaps},
    {"shortconv.out_proj", "model.layers.{}.conv.out_proj"},
    {"ffn_norm", "model.layers.{}.ffn_norm"},
    {"ffn_gate", "model.layers.{}.feed_forward.w1"},
    {"ffn_up", "model.layers.{}.feed_forward.w3"},
    {"ffn_down", "model.layers.{}.feed_forward.w2"},
    {"ffn_gate_inp", "model.layers.{}.feed_forward.gate"},
    {"exp_probs_b", "model.layers.{}.feed_forward.expert_bias", GgufRows::kAsTheyWere, ".bias"},
    {"ffn_gate_exps", "model.layers.{}.feed_forward.experts.{}.w1", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.feed_forward.experts.{}.w3", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.feed_forward.experts.{}.w2", GgufRows::kExperts},
};

void CompleteLfm2(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  if (config.contains("rms_norm_eps")) config["norm_eps"] = config["rms_norm_eps"];
  config.erase("rms_norm_eps");
  config["block_auto_adjust_ff_dim"] = false;
  config["conv_L_cache"] = OwnInt(metadata, "shortconv.l_cache");
  for (const bool convolution : shape.keyless) {
    config["layer_types"].push_back(convolution ? "conv" : "full_attention");
  }
}

// Files have no keys for the shares of experts, which all published models share.
void CompleteLfm2Moe(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  CompleteLfm2(metadata, shape, config);
  config["num_experts"] = OwnInt(metadata, "expert_count");
  config["num_experts_per_tok"] = OwnInt(metadata, "expert_used_count");
  config["moe_intermediate_size"] = OwnInt(metadata, "expert_feed_forward_length");
  config["num_dense_layers"] = OwnIntOr(metadata, "leading_dense_block_count", 0);
}

}  // namespace

const GgufFamily kLfm2Gguf = {.architecture = "lfm2",
                              .model_type = "lfm2",
                              .whole = kLfm2Whole,
                              .layers = kLfm2Layers,
                              .keyless_layers = true,
                              .complete = CompleteLfm2};
const GgufFamily kLfm2MoeGguf = {.architecture = "lfm2moe",
                                 .model_type = "lfm2_moe",
                                 .whole = kLfm2Whole,
                                 .layers = kLfm2Layers,
                                 .keyless_layers = true,
                                 .complete = CompleteLfm2Moe};

}  // namespace godwit
