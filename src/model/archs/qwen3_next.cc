#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

ops::DeltaNetShape ReadDeltaNet(const HfConfig& config) {
  const ops::DeltaNetShape shape = {
      .key_heads = config.IntOr("linear_num_key_heads", 16, kHeadRange),
      .value_heads = config.IntOr("linear_num_value_heads", 32, kHeadRange),
      .key_dim = config.IntOr("linear_key_head_dim", 128, kHeadDimRange),
      .value_dim = config.IntOr("linear_value_head_dim", 128, kHeadDimRange),
      .taps = config.IntOr("linear_conv_kernel_dim", 4, {1, ShortConvolutionSpec::kMostTaps}),
      .in_turn = config.BoolOr("linear_value_heads_in_turn", false)};
  if (shape.value_heads % shape.key_heads != 0) {
    config.Refuse("linear_num_value_heads",
                  fmt::format("a multiple of {} key heads", shape.key_heads));
  }
  return shape;
}

// Three of four layers are recurrent, unless the config says otherwise.
void SetDeltaNets(const HfConfig& config, DecoderSpec& spec) {
  const int64_t period = config.IntOr("full_attention_interval", 4, kLayerRange);
  std::vector<bool> recurrent;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    recurrent.push_back((layer + 1) % period != 0);
  }
  ChangeLayers(spec, ReadLayersOfType(config, "linear_attention", recurrent),
               [](LayerKind& kind) { kind.mixer = Mixer::kGatedDeltaNet; });
}

// Llama with norms of queries and keys, gains stored less 1, gates of attention's results, rotation
// of a quarter of each head, and gated DeltaNets.
DecoderSpec DescribeShape(const HfConfig& config, std::string_view intermediate) {
  DecoderSpec spec =
      DescribeLlamaShape(config, {.intermediate = intermediate, .default_head_dim = 256});
  if (spec.mlp.activation != ops::Activation::kSilu) {
    config.Refuse("hidden_act", "silu, which gates of recurrent layers have",
                  ErrorKind::kUnsupported);
  }
  if (!config.BoolOr("attn_output_gate", true)) {
    config.Refuse("attn_output_gate", "true", ErrorKind::kUnsupported);
  }
  spec.norm_gain_less_one = config.IntOr("norm_gain_offset", 1, {0, 1}) == 1;
  spec.qk_norm = QkNorm::kHeads;
  spec.gated_attention = true;
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  ReadRotary(config, ReadRotaryDim(config, "partial_rotary_factor", 0.25, spec), "rope_theta",
             spec);
  spec.delta.shape = ReadDeltaNet(config);
  spec.delta.rates_negated = config.BoolOr("decay_rates_negated", false);
  ModuleNames& names = spec.names;
  names.mixer_out = "model.layers.{}.linear_attn.out_proj";
  names.convolution = "model.layers.{}.linear_attn.conv1d";
  names.mixer_norm = "model.layers.{}.linear_attn.norm";
  names.decay_rates = "model.layers.{}.linear_attn.A_log";
  names.decay_biases = "model.layers.{}.linear_attn.dt_bias";
  names.others = {"mtp."};  // a layer that predicts one more token
  return spec;
}

// A layer as those with attention, on request. key: the number of such layers (absent: 1), of which
// the first is described.
void ReadPrediction(const HfConfig& config, std::string_view key, DecoderSpec& spec) {
  if (config.IntOr(key, 1, {0, kLayerRange.max}) == 0) return;
  spec.prediction = {.kind = spec,
                     .layer = "mtp.layers.0",
                     .join = "mtp.fc",
                     .embedding_norm = "mtp.pre_fc_norm_embedding",
                     .output_norm = "mtp.pre_fc_norm_hidden",
                     .norm = "mtp.norm",
                     .unsupported = {}};
  constexpr std::string_view kOwnEmbeddings = "mtp_use_dedicated_embeddings";
  if (config.BoolOr(kOwnEmbeddings, false)) {
    spec.prediction->unsupported = fmt::format("{} true, expected false", kOwnEmbeddings);
  }
}

// z apart from q, k and v.
void NameInputsApart(DecoderSpec& spec) {
  spec.names.mixer_in = "model.layers.{}.linear_attn.in_proj_qkv";
  spec.names.delta_z = "model.layers.{}.linear_attn.in_proj_z";
}

// Projections of gated DeltaNets as tensors of their own.
void NameApart(DecoderSpec& spec) {
  NameInputsApart(spec);
  spec.names.delta_update = "model.layers.{}.linear_attn.in_proj_b";
  spec.names.delta_decay = "model.layers.{}.linear_attn.in_proj_a";
}

// Experts, of which one serves all tokens, times a share of its own.
void ReadExperts(const HfConfig& config, int64_t experts, int64_t per_token, DecoderSpec& spec) {
  spec.shared_mlp = spec.mlp;
  spec.shared_mlp.intermediate = config.IntOr("shared_expert_intermediate_size", 512, kWidthRange);
  spec.shared_gated = true;
  spec.mlp.intermediate = config.IntOr("moe_intermediate_size", 512, kWidthRange);
  spec.mlp.experts = experts;
  ReadExpertsPerToken(config, per_token, experts, spec);
  ModuleNames& names = spec.names;
  NameExperts(names);
  names.shared_gate = "model.layers.{}.mlp.shared_expert.gate_proj";
  names.shared_up = "model.layers.{}.mlp.shared_expert.up_proj";
  names.shared_down = "model.layers.{}.mlp.shared_expert.down_proj";
  names.shared_share = "model.layers.{}.mlp.shared_expert_gate";
}

}  // namespace

// Rows of projections lie by key heads, those of GGUF in part. Some layers may have one MLP.
DecoderSpec DescribeQwen3Next(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, "intermediate_size");
  spec.delta.inputs_by_key_heads = !config.BoolOr("linear_inputs_apart", false);
  spec.delta.gates_by_key_heads = true;
  if (spec.delta.inputs_by_key_heads) {
    spec.names.mixer_in = "model.layers.{}.linear_attn.in_proj_qkvz";
  } else {
    NameInputsApart(spec);
  }
  spec.names.delta_gates = "model.layers.{}.linear_attn.in_proj_ba";
  const MlpSpec dense = spec.mlp;
  const int64_t experts = config.IntOr("num_experts", 512, {0, kExpertRange.max});
  if (experts > 0) {
    ReadExperts(config, experts, /*per_token=*/10, spec);
    spec.mlp.shares_among_chosen = config.BoolOr("norm_topk_prob", true);
  }
  ReadPrediction(config, "num_nextn_predict_layers", spec);
  const int64_t step = config.IntOr("decoder_sparse_step", 1, kLayerRange);
  const std::vector<int64_t> listed = config.Ints("mlp_only_layers", {0, kLayerRange.max});
  SetDeltaNets(config, spec);
  if (experts == 0) return spec;
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    if ((layer + 1) % step != 0 || std::ranges::count(listed, layer) > 0) kind.mlp = dense;
  });
  return spec;
}

DecoderSpec DescribeQwen35Text(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, "intermediate_size");
  NameApart(spec);
  ReadPrediction(config, "mtp_num_hidden_layers", spec);
  SetDeltaNets(config, spec);
  return spec;
}

// A tensor holds a matrix of all experts, or each expert has its own.
DecoderSpec DescribeQwen35MoeText(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, /*intermediate=*/"");
  NameApart(spec);
  ReadExperts(config, config.IntOr("num_experts", 256, kExpertRange), /*per_token=*/8, spec);
  spec.mlp.fused = spec.mlp.stacked = true;
  ModuleNames& names = spec.names;
  names.per_expert_gate = names.gate;
  names.per_expert_up = names.up;
  names.per_expert_down = names.down;
  names.up = "model.layers.{}.mlp.experts.gate_up_proj";
  names.down = "model.layers.{}.mlp.experts.down_proj";
  names.expert_weight = "";
  ReadPrediction(config, "mtp_num_hidden_layers", spec);
  SetDeltaNets(config, spec);
  return spec;
}

namespace {

// The text model beside a vision model. The three positions of a token, by which pictures are
// placed, are the same in a text.
DecoderSpec DescribeBesideVision(const HfConfig& config,
                                 DecoderSpec (*describe)(const HfConfig& config)) {
  const HfConfig text = NeedObject(config, "text_config");
  DecoderSpec spec = describe(text);
  spec.tied_head = text.BoolOr("tie_word_embeddings", config.BoolOr("tie_word_embeddings", false));
  if (const auto fields = RotaryFields(text)) {
    for (const std::string_view key : {"mrope_section", "mrope_interleaved"}) {
      fields->MarkAsRead(key);
    }
  }
  return BesideVision(config, std::move(spec), "visual");
}

}  // namespace

DecoderSpec DescribeQwen35(const HfConfig& config) {
  return DescribeBesideVision(config, DescribeQwen35Text);
}

DecoderSpec DescribeQwen35Moe(const HfConfig& config) {
  return DescribeBesideVision(config, DescribeQwen35MoeText);
}

namespace {

constexpr GgufName kDeltaNetLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"attn_qkv", "model.layers.{}.linear_attn.in_proj_qkv"},
    {"attn_gate", "model.layers.{}.linear_attn.in_proj_z"},
    {"ssm_ba", "model.layers.{}.linear_attn.in_proj_ba"},
    {"ssm_beta", "model.layers.{}.linear_attn.in_proj_b"},
    {"ssm_alpha", "model.layers.{}.linear_attn.in_proj_a"},
    {"ssm_conv1d", "model.layers.{}.linear_attn.conv1d", GgufRows::kTaps},
    {"ssm_a", "model.layers.{}.linear_attn.A_log", GgufRows::kAsTheyWere, ""},
    {"ssm_dt", "model.layers.{}.linear_attn.dt_bias", GgufRows::kAsTheyWere, ".bias"},
    {"ssm_norm", "model.layers.{}.linear_attn.norm"},
    {"ssm_out", "model.layers.{}.linear_attn.out_proj"},
    {"post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj", GgufRows::kExperts},
    {"ffn_gate_shexp", "model.layers.{}.mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "model.layers.{}.mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "model.layers.{}.mlp.shared_expert.down_proj"},
    {"ffn_gate_inp_shexp", "model.layers.{}.mlp.shared_expert_gate", GgufRows::kOneRow},
};

constexpr GgufName kDeltaNetPrediction[] = {
    {"nextn.eh_proj", "mtp.fc"},
    {"nextn.enorm", "mtp.pre_fc_norm_embedding"},
    {"nextn.hnorm", "mtp.pre_fc_norm_hidden"},
    {"nextn.shared_head_norm", "mtp.norm"},
};

// Converters add 1 to gains, but for those of values' norms, and store rates of decay.
void CompleteDeltaNets(const GgufMetadata& metadata, const GgufShape& shape,
                       nlohmann::json& config) {
  config["norm_gain_offset"] = 0;
  config["decay_rates_negated"] = true;
  config["attention_bias"] = shape.qkv_bias;
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
  config["full_attention_interval"] = OwnIntOr(metadata, "full_attention_interval", 4);
  config["linear_conv_kernel_dim"] = OwnInt(metadata, "ssm.conv_kernel");
  config["linear_key_head_dim"] = OwnInt(metadata, "ssm.state_size");
  config["linear_num_key_heads"] = OwnInt(metadata, "ssm.group_count");
  const int64_t heads = OwnInt(metadata, "ssm.time_step_rank");
  const int64_t values = OwnInt(metadata, "ssm.inner_size");
  if (values % heads != 0) {
    metadata.Refuse(metadata.ArchitectureKey("ssm.inner_size"),
                    fmt::format("a multiple of {} heads", heads), fmt::format("{}", values));
  }
  config["linear_num_value_heads"] = heads;
  config["linear_value_head_dim"] = values / heads;
}

void CompleteExperts(const GgufMetadata& metadata, nlohmann::json& config) {
  config["num_experts"] = OwnInt(metadata, "expert_count");
  config["num_experts_per_tok"] = OwnInt(metadata, "expert_used_count");
  config["moe_intermediate_size"] = OwnInt(metadata, "expert_feed_forward_length");
  config["shared_expert_intermediate_size"] = OwnInt(metadata, "expert_shared_feed_forward_length");
}

void CompleteQwen3Next(const GgufMetadata& metadata, const GgufShape& shape,
                       nlohmann::json& config) {
  CompleteDeltaNets(metadata, shape, config);
  CompleteExperts(metadata, config);
  config["linear_inputs_apart"] = true;
  config["num_nextn_predict_layers"] = ReadLayers(metadata).predicting;
  if (!config.contains("intermediate_size")) {
    config["intermediate_size"] = config["moe_intermediate_size"];
  }
}

// Sections of positions serve pictures alone.
void CompleteQwen35(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  CompleteDeltaNets(metadata, shape, config);
  config["linear_value_heads_in_turn"] = true;
  config["mtp_num_hidden_layers"] = ReadLayers(metadata).predicting;
  config.erase("use_mrope");
}

void CompleteQwen35Moe(const GgufMetadata& metadata, const GgufShape& shape,
                       nlohmann::json& config) {
  CompleteQwen35(metadata, shape, config);
  CompleteExperts(metadata, config);
  config.erase("intermediate_size");
}

}  // namespace

const GgufFamily kQwen3NextGguf = {.architecture = "qwen3next",
                                   .model_type = "qwen3_next",
                                   .layers = kDeltaNetLayers,
                                   .prediction = kDeltaNetPrediction,
                                   .predicting = "mtp.layers.0",
                                   .read_only = kDeltaNetIsReadOnly,
                                   .complete = CompleteQwen3Next};
const GgufFamily kQwen35Gguf = {.architecture = "qwen35",
                                .model_type = "qwen3_5_text",
                                .layers = kDeltaNetLayers,
                                .prediction = kDeltaNetPrediction,
                                .predicting = "mtp.layers.0",
                                .read_only = kDeltaNetIsReadOnly,
                                .complete = CompleteQwen35};
const GgufFamily kQwen35MoeGguf = {.architecture = "qwen35moe",
                                   .model_type = "qwen3_5_moe_text",
                                   .layers = kDeltaNetLayers,
                                   .prediction = kDeltaNetPrediction,
                                   .predicting = "mtp.layers.0",
                                   .read_only = kDeltaNetIsReadOnly,
                                   .complete = CompleteQwen35Moe};

}  // namespace godwit
