#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
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

// Absent sizes follow from attention's. A token may take away twice what the state says for its
// key, unless told otherwise.
GatedDeltaNetSpec ReadOlmoDeltaNet(const HfConfig& config, const DecoderSpec& spec) {
  const int64_t key_heads = config.IntOr("linear_num_key_heads", spec.heads, kHeadRange);
  const int64_t value_heads = config.IntOr("linear_num_value_heads", spec.heads, kHeadRange);
  if (value_heads % key_heads != 0) {
    config.Refuse("linear_num_value_heads", fmt::format("a multiple of {} key heads", key_heads));
  }
  const int64_t usual = 3 * spec.hidden_size / (4 * key_heads);
  const int64_t key_dim = config.IntOr("linear_key_head_dim", usual, kHeadDimRange);
  const int64_t value_dim = config.IntOr("linear_value_head_dim", 2 * key_dim, kHeadDimRange);
  if (key_dim < 1) config.Refuse("linear_num_key_heads", "fewer heads than the hidden size has");
  constexpr IntRange kTaps = {1, ShortConvolutionSpec::kMostTaps};
  return {.shape = {.key_heads = key_heads,
                    .value_heads = value_heads,
                    .key_dim = key_dim,
                    .value_dim = value_dim,
                    .taps = config.IntOr("linear_conv_kernel_dim", 4, kTaps)},
          .inputs_apart = true,
          .update_scale = config.BoolOr("linear_allow_neg_eigval", true) ? 2.0f : 1.0f,
          .norm_epsilon = 1e-5f};  // no field states it
}

// Whether heads rotate: not by a base of null.
bool RotatesOlmoHybrid(const HfConfig& config) {
  const auto fields = RotaryFields(config);
  if (fields && (fields->Has("rope_theta") || fields->IsNull("rope_theta"))) {
    return fields->Has("rope_theta");
  }
  return !config.IsNull("rope_theta");
}

// Three of four layers are recurrent, and one of few is not.
std::vector<bool> RecurrentOlmoLayers(int64_t layers) {
  std::vector<bool> recurrent;
  for (int64_t i = 0; i < layers; ++i) recurrent.push_back((i + 1) % 4 != 0);
  if (layers < 4) recurrent.back() = false;
  return recurrent;
}

}  // namespace

// OLMo 2 with gated DeltaNets in most layers, whose norms stand before blocks. Published models
// have no positions: their base of rotations is null.
DecoderSpec DescribeOlmoHybrid(const HfConfig& config) {
  DecoderSpec spec = DescribeWithOutputNorms(config);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-6, {0, 1}));
  if (spec.mlp.activation != ops::Activation::kSilu) {
    config.Refuse("hidden_act", "silu, which convolutions of recurrent layers have",
                  ErrorKind::kUnsupported);
  }
  if (!RotatesOlmoHybrid(config)) {
    if (const auto fields = RotaryFields(config)) fields->MarkAsRead("rope_type");
  } else {
    ReadRotary(config, spec.head_dim, "rope_theta", spec);
  }
  spec.delta = ReadOlmoDeltaNet(config, spec);
  ModuleNames& names = spec.names;
  names.delta_inputs = {"model.layers.{}.linear_attn.q_proj", "model.layers.{}.linear_attn.k_proj",
                        "model.layers.{}.linear_attn.v_proj"};
  names.delta_convolutions = {"model.layers.{}.linear_attn.q_conv1d",
                              "model.layers.{}.linear_attn.k_conv1d",
                              "model.layers.{}.linear_attn.v_conv1d"};
  names.delta_z = "model.layers.{}.linear_attn.g_proj";
  names.delta_update = "model.layers.{}.linear_attn.b_proj";
  names.delta_decay = "model.layers.{}.linear_attn.a_proj";
  names.decay_rates = "model.layers.{}.linear_attn.A_log";
  names.decay_biases = "model.layers.{}.linear_attn.dt_bias";
  names.mixer_norm = "model.layers.{}.linear_attn.o_norm";
  names.mixer_out = "model.layers.{}.linear_attn.o_proj";
  // In some published files.
  names.renamed_norms = {{".input_layernorm", ".attention_layer_norm"},
                         {".post_attention_layernorm", ".feedforward_layer_norm"}};
  ChangeLayers(spec, ReadLayersOfType(config, "linear_attention", RecurrentOlmoLayers(spec.layers)),
               [](LayerKind& kind) {
                 kind.mixer = Mixer::kGatedDeltaNet;
                 kind.input_norms = true;
                 kind.output_norms = false;
               });
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
