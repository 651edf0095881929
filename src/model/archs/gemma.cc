#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

constexpr CommonKeys kGemmaKeys = {.activation = "hidden_activation",
                                   .default_activation = "gelu_pytorch_tanh",
                                   .tied_by_default = true,
                                   .default_head_dim = 256};
// Defaults for fields that a text_config beside a vision model leaves out.
constexpr CommonKeys kGemmaKeysBesideVision = {.activation = "hidden_activation",
                                               .default_activation = "gelu_pytorch_tanh",
                                               .tied_by_default = true,
                                               .default_vocab = 262208,
                                               .default_heads = 8,
                                               .default_kv_heads = 4,
                                               .default_head_dim = 256};

// A model trained in bf16 has learnt with the scale rounded to bf16.
float EmbeddingScale(const HfConfig& config, const DecoderSpec& spec) {
  return InStoredType(config, std::sqrt(static_cast<float>(spec.hidden_size)));
}

// Llama's shape with gains stored less 1, scaled embeddings, GELU and a tied head. The heads
// together are not as wide as the hidden size.
DecoderSpec DescribeShape(const HfConfig& config, const CommonKeys& keys) {
  DecoderSpec spec = DescribeLlamaShape(config, keys);
  // godwit's own field for tensors that hold the gains. Adding 1 to stored gains less 1 would round
  // them.
  spec.norm_gain_less_one = config.IntOr("norm_gain_offset", 1, {0, 1}) == 1;
  spec.embedding_scale = EmbeddingScale(config, spec);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  return spec;
}

std::optional<float> ReadCap(const HfConfig& config, std::string_view key, double fallback) {
  const double cap = config.IsNull(key) ? 0 : config.FloatOr(key, fallback, {0, 1e6});
  return cap == 0 ? std::nullopt : std::optional(static_cast<float>(cap));
}

// Norms before and behind both blocks, a stated scale of scores, and caps.
void AddOutputNorms(const HfConfig& config, double score_cap, double logit_cap, DecoderSpec& spec) {
  spec.score_cap = ReadCap(config, "attn_logit_softcapping", score_cap);
  spec.logit_cap = ReadCap(config, "final_logit_softcapping", logit_cap);
  spec.score_scale =
      static_cast<float>(1 / std::sqrt(config.FloatOr("query_pre_attn_scalar", 256, {1e-3, 1e6})));
  spec.output_norms = true;
  spec.names.attention_out_norm = "model.layers.{}.post_attention_layernorm";
  spec.names.mlp_norm = "model.layers.{}.pre_feedforward_layernorm";
  spec.names.mlp_out_norm = "model.layers.{}.post_feedforward_layernorm";
}

// Norms of queries and keys, and five layers with windows for one without. Layers with windows have
// their own rotary base.
DecoderSpec DescribeThird(const HfConfig& config, const CommonKeys& keys) {
  DecoderSpec spec = DescribeShape(config, keys);
  AddOutputNorms(config, /*score_cap=*/0, /*logit_cap=*/0, spec);
  spec.qk_norm = QkNorm::kHeads;
  ReadAlternatingWindows(config, config.IntOr("sliding_window_pattern", 6, kLayerRange), spec);
  ReadRotaryByWindow(config, /*default_theta=*/1e6,
                     config.FloatOr("rope_local_base_freq", 1e4, kThetaRange), spec);
  return spec;
}

}  // namespace

DecoderSpec DescribeGemma(const HfConfig& config) {
  CommonKeys keys = kGemmaKeys;
  keys.activation = "hidden_act";
  DecoderSpec spec = DescribeShape(config, keys);
  // The first files say "gelu" but mean its tanh form, with which the models were trained.
  if (spec.mlp.activation == ops::Activation::kGeluErf) {
    spec.mlp.activation = ops::Activation::kGeluTanh;
  }
  ReadRotary(config, spec.head_dim, "rope_theta", spec);
  return spec;
}

// Every other layer has a window, from the first one on.
DecoderSpec DescribeGemma2(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, kGemmaKeys);
  AddOutputNorms(config, /*score_cap=*/50, /*logit_cap=*/30, spec);
  ReadRotary(config, spec.head_dim, "rope_theta", spec);
  ReadAlternatingWindows(config, /*period=*/2, spec);
  return spec;
}

DecoderSpec DescribeGemma3Text(const HfConfig& config) { return DescribeThird(config, kGemmaKeys); }

// Gemma 3 without its vision part.
DecoderSpec DescribeGemma3(const HfConfig& config) {
  DecoderSpec spec = DescribeThird(NeedObject(config, "text_config"), kGemmaKeysBesideVision);
  spec.embedding_scale = EmbeddingScale(config, spec);
  return BesideVision(config, std::move(spec));
}

namespace {

constexpr GgufName kGemmaLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};
constexpr GgufName kGemma2Layers[] = {
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
};

// The file's norm weights include the 1 that Gemma adds to them. Published models are all in bf16,
// as is the scale of their embeddings, whatever type the file has.
void CompleteGemma(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["norm_gain_offset"] = 0;
  config["dtype"] = "bfloat16";
  config["attention_bias"] = shape.qkv_bias;
  ReadWindowPattern(metadata, config);
}

// No key has the scale of the scores. In the model with layers_of_27b layers it is that of heads of
// hidden / heads numbers. In all others of its generation it is that of the real heads.
void ReadScoreScale(const GgufMetadata& metadata, const GgufShape& shape, int64_t layers_of_27b,
                    nlohmann::json& config) {
  const bool is_27b =
      metadata.Int(metadata.ArchitectureKey("block_count"), kSizeRange) == layers_of_27b;
  const int64_t hidden = metadata.Int(metadata.ArchitectureKey("embedding_length"), kSizeRange);
  config["query_pre_attn_scalar"] = is_27b ? hidden / shape.heads : shape.head_dim;
}

void CompleteGemma2(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  CompleteGemma(metadata, shape, config);
  ReadScoreScale(metadata, shape, /*layers_of_27b=*/46, config);
}

void CompleteGemma3(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  CompleteGemma(metadata, shape, config);
  ReadScoreScale(metadata, shape, /*layers_of_27b=*/62, config);
  if (!config.contains("sliding_window")) config["sliding_window"] = nullptr;
}

}  // namespace

const GgufFamily kGemmaGguf = {.architecture = "gemma",
                               .model_type = "gemma",
                               .layers = kGemmaLayers,
                               .complete = CompleteGemma};
const GgufFamily kGemma2Gguf = {.architecture = "gemma2",
                                .model_type = "gemma2",
                                .layers = kGemma2Layers,
                                .complete = CompleteGemma2};
const GgufFamily kGemma3Gguf = {.architecture = "gemma3",
                                .model_type = "gemma3_text",
                                .layers = kGemma2Layers,
                                .complete = CompleteGemma3};

}  // namespace godwit
