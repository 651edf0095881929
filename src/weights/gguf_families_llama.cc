#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "weights/gguf_families.h"
#include "weights/gguf_family_fields.h"

namespace godwit {
namespace {

using nlohmann::json;

// --- Llama, and what its converter writes: Mistral, Mixtral -----------------------------------

constexpr GgufName kLlamaLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj", GgufRows::kPairedQ},
    {"attn_k", "model.layers.{}.self_attn.k_proj", GgufRows::kPairedK},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"},
    {"ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.{}.w1", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.{}.w3", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.{}.w2", GgufRows::kExperts},
};

void DescribeLlama(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
  config["mlp_bias"] = shape.mlp_bias;
  if (!config.value("sliding_window", json()).is_null()) config["model_type"] = "mistral";
  const int64_t experts =
      metadata.IntOr(metadata.ArchitectureKey("expert_count"), 0, {0, kSizeRange.max});
  if (experts == 0) return;
  config["model_type"] = "mixtral";
  config["num_local_experts"] = experts;
  config["num_experts_per_tok"] =
      metadata.Int(metadata.ArchitectureKey("expert_used_count"), kSizeRange);
}

// --- Qwen -------------------------------------------------------------------------------------

constexpr GgufName kQwenLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj", GgufRows::kExperts},
};

// Qwen2's config.json has no field for biases: there are always some.
void DescribeQwen2(const GgufMetadata& metadata, const GgufShape& shape, json& /*config*/) {
  RequireWholeRotation(metadata, shape);
}

void DescribeQwen(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
}

// Every published model takes shares among the chosen experts, and no key says otherwise.
void DescribeQwenMoe(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  DescribeQwen(metadata, shape, config);
  config["num_experts"] = metadata.Int(metadata.ArchitectureKey("expert_count"), kSizeRange);
  config["num_experts_per_tok"] =
      metadata.Int(metadata.ArchitectureKey("expert_used_count"), kSizeRange);
  config["moe_intermediate_size"] =
      metadata.Int(metadata.ArchitectureKey("expert_feed_forward_length"), kSizeRange);
  config["norm_topk_prob"] = true;
}

// --- GLM-4-0414: the pairs lie side by side in Hugging Face's files, too -----------------------

constexpr GgufName kGlm4Layers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"post_attention_norm", "model.layers.{}.post_self_attn_layernorm"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_up", "model.layers.{}.mlp.gate_up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"post_ffw_norm", "model.layers.{}.post_mlp_layernorm"},
};

void DescribeGlm4(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  config["attention_bias"] = shape.qkv_bias;
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
}

constexpr GgufFamily kLlamaFamilies[] = {
    {"llama", "llama", kLlamaGgufWhole, kLlamaLayers, false, DescribeLlama},
    {"qwen2", "qwen2", kLlamaGgufWhole, kQwenLayers, false, DescribeQwen2},
    {"qwen3", "qwen3", kLlamaGgufWhole, kQwenLayers, false, DescribeQwen},
    {"qwen3moe", "qwen3_moe", kLlamaGgufWhole, kQwenLayers, false, DescribeQwenMoe},
    {"internlm2", "llama", kLlamaGgufWhole, kLlamaLayers, false, DescribeLlama},
    {"glm4", "glm4", kLlamaGgufWhole, kGlm4Layers, false, DescribeGlm4},
};

}  // namespace

std::span<const GgufFamily> LlamaGgufFamilies() { return kLlamaFamilies; }

}  // namespace godwit
