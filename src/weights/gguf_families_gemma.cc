#include <nlohmann/json.hpp>

#include "weights/gguf_families.h"
#include "weights/gguf_family_fields.h"

namespace godwit {
namespace {

using nlohmann::json;

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
void DescribeGemma(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  RequireWholeRotation(metadata, shape);
  config["norm_gain_offset"] = 0;
  config["dtype"] = "bfloat16";
  config["attention_bias"] = shape.qkv_bias;
  ReadWindowPattern(metadata, config);
}

// No key has the scale of the scores. In the model with layers_of_27b layers it is that of heads of
// hidden / heads numbers. In all others of its generation it is that of the real heads.
void ReadScoreScale(const GgufMetadata& metadata, const GgufShape& shape, int64_t layers_of_27b,
                    json& config) {
  const bool is_27b =
      metadata.Int(metadata.ArchitectureKey("block_count"), kSizeRange) == layers_of_27b;
  const int64_t hidden = metadata.Int(metadata.ArchitectureKey("embedding_length"), kSizeRange);
  config["query_pre_attn_scalar"] = is_27b ? hidden / shape.heads : shape.head_dim;
}

void DescribeGemma2(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  DescribeGemma(metadata, shape, config);
  ReadScoreScale(metadata, shape, /*layers_of_27b=*/46, config);
}

void DescribeGemma3(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  DescribeGemma(metadata, shape, config);
  ReadScoreScale(metadata, shape, /*layers_of_27b=*/62, config);
  if (!config.contains("sliding_window")) config["sliding_window"] = nullptr;
}

constexpr GgufFamily kGemmaFamilies[] = {
    {"gemma", "gemma", kLlamaGgufWhole, kGemmaLayers, false, DescribeGemma},
    {"gemma2", "gemma2", kLlamaGgufWhole, kGemma2Layers, false, DescribeGemma2},
    {"gemma3", "gemma3_text", kLlamaGgufWhole, kGemma2Layers, false, DescribeGemma3},
};

}  // namespace

std::span<const GgufFamily> GemmaGgufFamilies() { return kGemmaFamilies; }

}  // namespace godwit
