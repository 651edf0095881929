#include "model/shapes.h"

#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/quote.h"
#include "model/archs/all.h"
#include "weights/hf_config.h"

namespace godwit {
namespace {

// The context is longer than any measurement. A long context costs nothing.
constexpr ModelShape kShapes[] = {
    {"1b", "1.1 B weights: 16 layers of 2048, 32 heads of 64, 8 KV heads, vocabulary of 32000",
     R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
         "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": 64, "vocab_size": 32000, "max_position_embeddings": 4194304})"},
    {"3b", "3.2 B weights, as Llama 3.2 3B: 28 layers of 3072, 24 heads of 128, 8 KV heads",
     R"({"model_type": "llama", "hidden_size": 3072, "intermediate_size": 8192,
         "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8,
         "head_dim": 128, "vocab_size": 128256, "tie_word_embeddings": true,
         "rope_theta": 500000, "max_position_embeddings": 4194304})"},
    {"7b", "6.7 B weights, as Llama 2 7B: 32 layers of 4096, 32 heads of 128, 32 KV heads",
     R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
         "vocab_size": 32000, "max_position_embeddings": 4194304})"},
    {"8b", "8.0 B weights, as Llama 3.1 8B: 32 layers of 4096, 32 heads of 128, 8 KV heads",
     R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "vocab_size": 128256, "rope_theta": 500000, "max_position_embeddings": 4194304})"},
    {"moe",
     "30.5 B weights, as Qwen3 30B-A3B: 48 layers of 2048 with 128 experts, 8 for a token, 32 "
     "heads "
     "of 128, 4 KV heads",
     R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
         "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
         "norm_topk_prob": true, "num_hidden_layers": 48, "num_attention_heads": 32,
         "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "rope_theta": 1000000,
         "max_position_embeddings": 4194304})"},
    {"qwen3-next-80b",
     "79.7 B weights, as Qwen3-Next 80B-A3B: 48 layers of 2048 with 512 experts, 10 for a token, "
     "36 of them gated DeltaNets of 32 heads, 12 with attention of 16 heads of 256",
     R"({"model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120,
         "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 512,
         "num_experts_per_tok": 10, "num_hidden_layers": 48, "num_attention_heads": 16,
         "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936, "rope_theta": 10000000,
         "max_position_embeddings": 4194304})"},
    {"qwen3.5-35b",
     "34.7 B weights, as Qwen3.5 35B-A3B: 40 layers of 2048 with 256 experts, 8 for a token, 30 of "
     "them gated DeltaNets of 32 heads, 10 with attention of 16 heads of 256",
     R"({"model_type": "qwen3_5_moe_text", "hidden_size": 2048, "moe_intermediate_size": 512,
         "shared_expert_intermediate_size": 512, "num_experts": 256, "num_experts_per_tok": 8,
         "linear_num_value_heads": 32, "num_hidden_layers": 40, "num_attention_heads": 16,
         "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 248320, "rope_theta": 10000000,
         "max_position_embeddings": 4194304})"},
    {"qwen3.5-27b",
     "26.9 B weights, as Qwen3.5 27B: 64 layers of 5120, 48 of them gated DeltaNets of 48 heads, "
     "16 with attention of 24 heads of 256",
     R"({"model_type": "qwen3_5_text", "hidden_size": 5120, "intermediate_size": 17408,
         "linear_num_value_heads": 48, "num_hidden_layers": 64, "num_attention_heads": 24,
         "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 248320, "rope_theta": 10000000,
         "max_position_embeddings": 4194304})"},
    {"kimi-linear-48b",
     "49.1 B weights, as Kimi Linear 48B-A3B: 27 layers of 2304 with 256 experts, 8 for a token, "
     "20 of them delta rules of 32 heads with decays of channels, 7 with latent attention",
     R"({"model_type": "kimi_linear", "hidden_size": 2304, "intermediate_size": 9216,
         "moe_intermediate_size": 1024, "num_experts": 256, "num_experts_per_token": 8,
         "num_hidden_layers": 27, "num_attention_heads": 32, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "linear_attn_config": {
             "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
             "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25,
                            26],
             "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4},
         "vocab_size": 163840, "model_max_length": 4194304})"},
    {"lfm2-8b",
     "8.3 B weights, as LFM2 8B-A1B: 24 layers of 2048 with 32 experts, 4 for a token, 18 of them "
     "short convolutions, 6 with attention of 32 heads of 64",
     R"({"model_type": "lfm2_moe", "hidden_size": 2048, "intermediate_size": 7168,
         "moe_intermediate_size": 1792, "num_experts": 32, "num_experts_per_tok": 4,
         "num_dense_layers": 2, "num_hidden_layers": 24, "num_attention_heads": 32,
         "num_key_value_heads": 8, "conv_L_cache": 3, "vocab_size": 65536,
         "layer_types": ["conv", "conv", "full_attention", "conv", "conv", "conv",
                         "full_attention", "conv", "conv", "conv", "full_attention", "conv",
                         "conv", "conv", "full_attention", "conv", "conv", "conv",
                         "full_attention", "conv", "conv", "full_attention", "conv", "conv"],
         "rope_theta": 1000000, "max_position_embeddings": 4194304})"},
    {"granite-4-h-small",
     "32.2 B weights, as Granite 4.0 H Small: 40 layers of 4096 with 72 experts, 10 for a token, "
     "36 of them Mamba2 of 128 heads, 4 with attention of 32 heads of 128",
     R"({"model_type": "granitemoehybrid", "hidden_size": 4096, "intermediate_size": 768,
         "shared_intermediate_size": 1536, "num_local_experts": 72, "num_experts_per_tok": 10,
         "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
         "layer_types": ["mamba", "mamba", "mamba", "mamba", "mamba", "attention", "mamba", "mamba",
                         "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "attention",
                         "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba",
                         "mamba", "attention", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba",
                         "mamba", "mamba", "mamba", "attention", "mamba", "mamba", "mamba",
                         "mamba"],
         "mamba_n_heads": 128, "mamba_d_state": 128, "vocab_size": 100352,
         "tie_word_embeddings": true, "attention_multiplier": 0.0078125, "logits_scaling": 16,
         "embedding_multiplier": 12, "residual_multiplier": 0.22,
         "max_position_embeddings": 4194304})"},
    {"nemotron-3-nano",
     "31.6 B weights, as Nemotron 3 Nano 30B-A3B: 52 blocks of 2688, 23 of them Mamba2 of 64 "
     "heads, 6 attention of 32 heads of 128, 23 with 128 experts, 6 for a token",
     R"({"model_type": "nemotron_h", "hidden_size": 2688, "moe_intermediate_size": 1856,
         "moe_shared_expert_intermediate_size": 3712, "n_routed_experts": 128,
         "num_experts_per_tok": 6, "routed_scaling_factor": 2.5,
         "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
         "num_attention_heads": 32, "num_key_value_heads": 2, "mamba_num_heads": 64,
         "vocab_size": 131072, "max_position_embeddings": 4194304})"},
    {"mla",
     "0.2 B weights: 4 layers of 2048 with the latent attention of DeepSeek V2 Lite, 16 heads over "
     "576 numbers a token",
     R"({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 1408,
         "moe_intermediate_size": 1408, "num_hidden_layers": 4, "first_k_dense_replace": 4,
         "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
         "num_attention_heads": 16, "q_lora_rank": null, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 32000,
         "max_position_embeddings": 4194304})"},
    {"70b", "71 B weights, as Llama 3.1 70B: 80 layers of 8192, 64 heads of 128, 8 KV heads",
     R"({"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
         "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
         "vocab_size": 128256, "rope_theta": 500000, "max_position_embeddings": 4194304})"},
};

bool LooksLikeAPath(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

}  // namespace

std::span<const ModelShape> AllShapes() { return kShapes; }

DecoderSpec FindShape(const std::string& name) {
  std::string names;
  for (const ModelShape& shape : kShapes) {
    if (shape.name == name) {
      return DescribeModel(HfConfig::Parse(shape.config, "shape " + name));
    }
    names += std::string(shape.name) + ", ";
  }
  if (LooksLikeAPath(name)) return DescribeModel(HfConfig::Load(name));
  Throw(ErrorKind::kInput, "unknown shape {}; there are: {}or the path of a config.json",
        Quote(name), names);
}

}  // namespace godwit
