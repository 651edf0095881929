#include "weights/gguf_families.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"

namespace godwit {
namespace {

using nlohmann::json;

constexpr IntRange kSizeRange{1, int64_t{1} << 40};

// Of the dimensions of a head. A little more than the quotient, which is multiplied and cut off
// where it is read.
double RotatedPart(const GgufMetadata& metadata, const GgufShape& shape) {
  const int64_t rotated =
      metadata.IntOr(metadata.Own("rope.dimension_count"), shape.head_dim, {0, shape.head_dim});
  return rotated == shape.head_dim
             ? 1
             : (static_cast<double>(rotated) + 0.5) / static_cast<double>(shape.head_dim);
}

void RequireWholeRotation(const GgufMetadata& metadata, const GgufShape& shape) {
  if (RotatedPart(metadata, shape) == 1) return;
  metadata.Refuse(metadata.Own("rope.dimension_count"),
                  fmt::format("{}, the size of a head", shape.head_dim), "fewer",
                  ErrorKind::kUnsupported);
}

// --- Llama, and what its converter writes: Mistral, Mixtral -----------------------------------

constexpr GgufName kLlamaWhole[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
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
  if (config.contains("sliding_window")) config["model_type"] = "mistral";
  const int64_t experts = metadata.IntOr(metadata.Own("expert_count"), 0, {0, kSizeRange.max});
  if (experts == 0) return;
  config["model_type"] = "mixtral";
  config["num_local_experts"] = experts;
  config["num_experts_per_tok"] = metadata.Int(metadata.Own("expert_used_count"), kSizeRange);
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

void DescribeQwen(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
}

// Shares among the chosen experts: what every published model has, and no key says otherwise.
void DescribeQwenMoe(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  DescribeQwen(metadata, shape, config);
  config["num_experts"] = metadata.Int(metadata.Own("expert_count"), kSizeRange);
  config["num_experts_per_tok"] = metadata.Int(metadata.Own("expert_used_count"), kSizeRange);
  config["moe_intermediate_size"] =
      metadata.Int(metadata.Own("expert_feed_forward_length"), kSizeRange);
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

// --- GPT-NeoX ---------------------------------------------------------------------------------

constexpr GgufName kNeoxWhole[] = {{"token_embd", "gpt_neox.embed_in"},
                                   {"output_norm", "gpt_neox.final_layer_norm"},
                                   {"output", "embed_out"}};
constexpr GgufName kNeoxLayers[] = {
    {"attn_norm", "gpt_neox.layers.{}.input_layernorm"},
    {"attn_qkv", "gpt_neox.layers.{}.attention.query_key_value", GgufRows::kUngrouped},
    {"attn_output", "gpt_neox.layers.{}.attention.dense"},
    {"ffn_norm", "gpt_neox.layers.{}.post_attention_layernorm"},
    {"ffn_up", "gpt_neox.layers.{}.mlp.dense_h_to_4h"},
    {"ffn_down", "gpt_neox.layers.{}.mlp.dense_4h_to_h"},
};

void DescribeNeox(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  config["attention_bias"] = shape.qkv_bias;
  config["rotary_pct"] = RotatedPart(metadata, shape);
  config["use_parallel_residual"] = metadata.BoolOr(metadata.Own("use_parallel_residual"), true);
}

// --- Falcon: 40B and 11B have several KV heads, 40B and 180B a norm for each block -------------

constexpr GgufName kFalconWhole[] = {{"token_embd", "transformer.word_embeddings"},
                                     {"output_norm", "transformer.ln_f"},
                                     {"output", "lm_head"}};
constexpr GgufName kFalconLayers[] = {
    {"attn_norm", "transformer.h.{}.input_layernorm"},
    {"attn_qkv", "transformer.h.{}.self_attention.query_key_value", GgufRows::kUngrouped},
    {"attn_output", "transformer.h.{}.self_attention.dense"},
    {"ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
    {"ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"},
};
constexpr GgufName kFalcon40Layers[] = {
    {"attn_norm", "transformer.h.{}.ln_mlp"},
    {"attn_norm_2", "transformer.h.{}.ln_attn"},
    {"attn_qkv", "transformer.h.{}.self_attention.query_key_value", GgufRows::kUngrouped},
    {"attn_output", "transformer.h.{}.self_attention.dense"},
    {"ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
    {"ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"},
};

void DescribeFalcon(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  RequireWholeRotation(metadata, shape);
  const bool new_architecture = shape.kv_heads > 1 || shape.second_attention_norm;
  config["new_decoder_architecture"] = new_architecture;
  config["multi_query"] = !new_architecture;
  config["num_kv_heads"] = shape.kv_heads;
  config["num_ln_in_parallel_attn"] = shape.second_attention_norm ? 2 : 1;
  config["parallel_attn"] = true;
  config["ffn_hidden_size"] = config["intermediate_size"];
  config["bias"] = false;
}

// --- MPT --------------------------------------------------------------------------------------

constexpr GgufName kMptWhole[] = {{"token_embd", "transformer.wte"},
                                  {"output_norm", "transformer.norm_f"},
                                  {"output", "lm_head"}};
constexpr GgufName kMptLayers[] = {
    {"attn_norm", "transformer.blocks.{}.norm_1"},
    {"attn_qkv", "transformer.blocks.{}.attn.Wqkv"},
    {"attn_output", "transformer.blocks.{}.attn.out_proj"},
    {"ffn_norm", "transformer.blocks.{}.norm_2"},
    {"ffn_up", "transformer.blocks.{}.ffn.up_proj"},
    {"ffn_down", "transformer.blocks.{}.ffn.down_proj"},
};

void DescribeMpt(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  if (shape.kv_heads != shape.heads) {
    metadata.Refuse(metadata.Own("attention.head_count_kv"), "one for every head",
                    fmt::format("{}", shape.kv_heads), ErrorKind::kUnsupported);
  }
  const auto hidden = config["hidden_size"].get<int64_t>();
  const auto intermediate = config["intermediate_size"].get<int64_t>();
  if (intermediate % hidden != 0) {
    metadata.Refuse(metadata.Own("feed_forward_length"), fmt::format("a multiple of {}", hidden),
                    fmt::format("{}", intermediate));
  }
  config["d_model"] = hidden;
  config["n_layers"] = config["num_hidden_layers"];
  config["n_heads"] = shape.heads;
  config["max_seq_len"] = config["max_position_embeddings"];
  config["expansion_ratio"] = intermediate / hidden;
  config["no_bias"] = true;
  const double bias = metadata.FloatOr(metadata.Own("attention.max_alibi_bias"), 0, {0, 64});
  config["attn_config"] = {{"alibi", bias > 0}, {"alibi_bias_max", bias}};
  config.erase("alibi");
  if (config.contains("clip_qkv")) config["attn_config"]["clip_qkv"] = config["clip_qkv"];
  config.erase("clip_qkv");
}

// --- BLOOM ------------------------------------------------------------------------------------

constexpr GgufName kBloomWhole[] = {{"token_embd", "transformer.word_embeddings"},
                                    {"token_embd_norm", "transformer.word_embeddings_layernorm"},
                                    {"output_norm", "transformer.ln_f"},
                                    {"output", "lm_head"}};
constexpr GgufName kBloomLayers[] = {
    {"attn_norm", "transformer.h.{}.input_layernorm"},
    {"attn_qkv", "transformer.h.{}.self_attention.query_key_value", GgufRows::kUngrouped},
    {"attn_output", "transformer.h.{}.self_attention.dense"},
    {"ffn_norm", "transformer.h.{}.post_attention_layernorm"},
    {"ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
    {"ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"},
};

void DescribeBloom(const GgufMetadata& /*metadata*/, const GgufShape& shape, json& config) {
  config["n_layer"] = config["num_hidden_layers"];
  config["n_head"] = shape.heads;
  config["seq_length"] = config["max_position_embeddings"];
  config["n_inner"] = config["intermediate_size"];
}

constexpr GgufFamily kFamilies[] = {
    {"llama", "llama", kLlamaWhole, kLlamaLayers, false, DescribeLlama},
    {"qwen2", "qwen2", kLlamaWhole, kQwenLayers, false, DescribeQwen},
    {"qwen3", "qwen3", kLlamaWhole, kQwenLayers, false, DescribeQwen},
    {"qwen3moe", "qwen3_moe", kLlamaWhole, kQwenLayers, false, DescribeQwenMoe},
    {"internlm2", "llama", kLlamaWhole, kLlamaLayers, false, DescribeLlama},
    {"glm4", "glm4", kLlamaWhole, kGlm4Layers, false, DescribeGlm4},
    {"gptneox", "gpt_neox", kNeoxWhole, kNeoxLayers, false, DescribeNeox},
    {"falcon", "falcon", kFalconWhole, kFalcon40Layers, true, DescribeFalcon},
    {"falcon", "falcon", kFalconWhole, kFalconLayers, false, DescribeFalcon},
    {"mpt", "mpt", kMptWhole, kMptLayers, false, DescribeMpt},
    {"bloom", "bloom", kBloomWhole, kBloomLayers, false, DescribeBloom},
};

}  // namespace

const GgufFamily& FindGgufFamily(const GgufMetadata& metadata, bool second_attention_norm) {
  constexpr std::string_view kKey = "general.architecture";
  const std::string architecture = metadata.String(kKey);
  const auto found = std::ranges::find_if(kFamilies, [&](const GgufFamily& family) {
    return family.architecture == architecture &&
           (second_attention_norm || !family.second_attention_norm);
  });
  if (found != std::end(kFamilies)) return *found;
  std::vector<std::string> names = Names(kFamilies, &GgufFamily::architecture);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  metadata.Refuse(kKey, fmt::format("{}", fmt::join(names, ", ")), Quote(architecture),
                  ErrorKind::kUnsupported);
}

}  // namespace godwit
