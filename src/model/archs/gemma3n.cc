#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/archs/gemma_keys.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

constexpr int64_t kGemma3nWindow = 512;
constexpr int64_t kGemma3nPeriod = 5;  // every so many layers one sees all tokens
constexpr CommonKeys kGemma3nKeys = {.intermediate = "",
                                     .activation = "hidden_activation",
                                     .default_activation = "gelu_pytorch_tanh",
                                     .tied_by_default = true,
                                     .default_kv_heads = 2,
                                     .default_head_dim = 256};
// Defaults for fields that a text_config beside a vision model leaves out.
constexpr CommonKeys kGemma3nKeysBesideVision = {.intermediate = "",
                                                 .activation = "hidden_activation",
                                                 .default_activation = "gelu_pytorch_tanh",
                                                 .tied_by_default = true,
                                                 .default_vocab = 262400,
                                                 .default_heads = 8,
                                                 .default_kv_heads = 2,
                                                 .default_head_dim = 256};

// The number below which a normal number lies with this probability, by Newton's method.
double NormalQuantile(double probability) {
  double x = 0;
  for (int step = 0; step < 60; ++step) {
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double move = (below - probability) / density;
    x -= std::abs(move) > 1 ? std::copysign(1, move) : move;
  }
  return x;
}

// The width of each layer's MLP [layers]: one number, or one for each.
std::vector<int64_t> ReadWidths(const HfConfig& config, int64_t layers) {
  constexpr std::string_view kWidth = "intermediate_size";
  if (!config.IsList(kWidth)) {
    return std::vector<int64_t>(static_cast<size_t>(layers), config.Int(kWidth, kWidthRange));
  }
  std::vector<int64_t> widths = config.Ints(kWidth, kWidthRange);
  if (std::ssize(widths) != layers) {
    config.Refuse(kWidth, fmt::format("one number, or one for each of {} layers", layers));
  }
  return widths;
}

// The part of each layer's gates [layers] that is cut.
std::vector<double> ReadSparsities(const HfConfig& config, int64_t layers) {
  constexpr std::string_view kPattern = "activation_sparsity_pattern";
  constexpr int64_t kSparseLayers = 10;
  std::vector<double> sparsities = config.Floats(kPattern, {0, 0.9999});
  if (sparsities.empty()) {
    for (int64_t i = 0; i < layers; ++i) {
      sparsities.push_back(layers > kSparseLayers && i < kSparseLayers ? 0.95 : 0);
    }
  }
  if (std::ssize(sparsities) != layers) {
    config.Refuse(kPattern, fmt::format("one number for each of {} layers", layers));
  }
  return sparsities;
}

void ReadStreams(const HfConfig& config, DecoderSpec& spec) {
  StreamsSpec streams;
  streams.count = config.IntOr("altup_num_inputs", 4, {2, 16});
  streams.active = config.IntOr("altup_active_idx", 0, {0, streams.count - 1});
  streams.scaled = config.BoolOr("altup_correct_scale", true);
  streams.narrow = config.IntOr("laurel_rank", 64, kWidthRange);
  config.MarkAsRead("altup_coef_clip");  // of training
  spec.streams = streams;
  ModuleNames& names = spec.names;
  names.streams_in = "model.altup_projections.{}";
  names.streams_out = "model.altup_unembed_projections.{}";
  names.stream_router = "model.layers.{}.altup.modality_router";
  names.stream_norm = "model.layers.{}.altup.router_norm";
  names.stream_predict = "model.layers.{}.altup.prediction_coefs";
  names.stream_correct = "model.layers.{}.altup.correction_coefs";
  names.stream_factors = "model.layers.{}.altup.correct_output_scale";
  names.laurel_down = "model.layers.{}.laurel.linear_left";
  names.laurel_up = "model.layers.{}.laurel.linear_right";
  names.laurel_norm = "model.layers.{}.laurel.post_laurel_norm";
}

// Gemma 3 with several residual streams, and a narrow product beside attention. Few gates pass.
// Layers have embeddings, and some read keys of others.
DecoderSpec DescribeWithStreams(const HfConfig& config, const HfConfig& whole,
                                const CommonKeys& keys) {
  DecoderSpec spec = DescribeLlamaShape(config, keys);
  const std::vector<int64_t> widths = ReadWidths(config, spec.layers);
  const std::vector<double> sparsities = ReadSparsities(config, spec.layers);
  ReadNormsAndScales(config, whole, /*default_cap=*/30, spec);
  ReadLayerEmbedding(config, whole, spec);
  if (!spec.layer_embedding) {
    config.Refuse("hidden_size_per_layer_input", "embeddings of each layer",
                  ErrorKind::kUnsupported);
  }
  ReadStreams(config, spec);
  spec.mlp.intermediate = widths.front();
  ReadAlternatingWindows(config, kGemma3nPeriod, spec, kGemma3nWindow);
  ReadRotaryByWindow(config, /*default_theta=*/1e6,
                     config.FloatOr("rope_local_base_freq", 1e4, kThetaRange), spec);
  std::vector<bool> windowed;
  for (const bool without : LayersWithoutWindow(spec)) windowed.push_back(!without);
  const std::vector<int64_t> sources =
      ReadKeySources(config, windowed, /*default_shared=*/15, spec);
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    kind.keys_of = sources[layer];
    kind.mlp.intermediate = widths[layer];
    if (sparsities[layer] > 0) {
      kind.mlp.cut_deviations = static_cast<float>(NormalQuantile(sparsities[layer]));
    }
  });
  return spec;
}

}  // namespace

DecoderSpec DescribeGemma3nText(const HfConfig& config) {
  return DescribeWithStreams(config, config, kGemma3nKeys);
}

// Gemma 3n without its parts that see and hear.
DecoderSpec DescribeGemma3n(const HfConfig& config) {
  return BesideSightAndHearing(config, kGemma3nKeysBesideVision, DescribeWithStreams);
}

namespace {

// "{1}" is the stream.
constexpr GgufName kGemma3nWhole[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"per_layer_token_embd", "model.embed_tokens_per_layer"},
    {"per_layer_model_proj", "model.per_layer_model_projection"},
    {"per_layer_proj_norm", "model.per_layer_projection_norm"},
    {"altup_proj", "model.altup_projections.{1}", GgufRows::kStreams},
    {"altup_unembd_proj", "model.altup_unembed_projections.{1}", GgufRows::kStreams},
};

constexpr GgufName kGemma3nLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_norm", "model.layers.{}.pre_feedforward_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
    {"inp_gate", "model.layers.{}.per_layer_input_gate"},
    {"proj", "model.layers.{}.per_layer_projection"},
    {"post_norm", "model.layers.{}.post_per_layer_input_norm"},
    {"altup_router", "model.layers.{}.altup.modality_router"},
    {"altup_router_norm", "model.layers.{}.altup.router_norm"},
    {"altup_predict_coef", "model.layers.{}.altup.prediction_coefs"},
    {"altup_correct_coef", "model.layers.{}.altup.correction_coefs"},
    {"altup_correct_scale", "model.layers.{}.altup.correct_output_scale", GgufRows::kAsTheyWere,
     ".weight"},
    {"laurel_l", "model.layers.{}.laurel.linear_left"},
    {"laurel_r", "model.layers.{}.laurel.linear_right"},
    {"laurel_post_norm", "model.layers.{}.laurel.post_laurel_norm"},
};

// Files have the deviations above which gates pass, not the parts of gates that do not.
void CompleteSparsities(const GgufMetadata& metadata, nlohmann::json& config) {
  const std::string key = metadata.ArchitectureKey("activation_sparsity_scale");
  if (!metadata.Has(key)) return;
  const std::vector<float> deviations = metadata.Floats(key);
  const int64_t layers = config["num_hidden_layers"];
  if (std::ssize(deviations) != layers) {
    metadata.Refuse(key, fmt::format("one for each of {} layers", layers),
                    fmt::format("{}", deviations.size()));
  }
  for (const float deviation : deviations) {
    const double below = std::erfc(-double{deviation} / std::numbers::sqrt2) / 2;
    if (!(below <= 0.9999)) {
      metadata.Refuse(key, "deviations up to 3.7", fmt::format("{}", deviation),
                      ErrorKind::kUnsupported);
    }
    config["activation_sparsity_pattern"].push_back(below);
  }
}

void CompleteGemma3n(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["dtype"] = "bfloat16";  // of published models, for the scale of embeddings
  config["attention_bias"] = shape.qkv_bias;
  ReadWindowPattern(metadata, config);
  CompleteSparsities(metadata, config);
  if (!shape.mlp_widths.empty()) config["intermediate_size"] = shape.mlp_widths;
  config["altup_num_inputs"] = OwnInt(metadata, "altup.num_inputs");
  config["altup_active_idx"] = OwnIntOr(metadata, "altup.active_idx", 0);
  config["hidden_size_per_layer_input"] = OwnInt(metadata, "embedding_length_per_layer_input");
  config["vocab_size_per_layer_input"] = shape.layer_rows;
  config["laurel_rank"] = shape.laurel_rank;
  const std::string shared = metadata.ArchitectureKey("attention.shared_kv_layers");
  if (metadata.Has(shared)) {
    config["num_kv_shared_layers"] = OwnIntOr(metadata, "attention.shared_kv_layers", 0);
  }
}

}  // namespace

const GgufFamily kGemma3nGguf = {.architecture = "gemma3n",
                                 .model_type = "gemma3n_text",
                                 .whole = kGemma3nWhole,
                                 .layers = kGemma3nLayers,
                                 .listed_widths = true,
                                 .read_only = kUnequalLayersAreReadOnly,
                                 .complete = CompleteGemma3n};

}  // namespace godwit
