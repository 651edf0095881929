#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "weights/gguf_families.h"
#include "weights/gguf_family_fields.h"

namespace godwit {
namespace {

using nlohmann::json;

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
  config["use_parallel_residual"] =
      metadata.BoolOr(metadata.ArchitectureKey("use_parallel_residual"), true);
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
    metadata.Refuse(metadata.ArchitectureKey("attention.head_count_kv"), "one for every head",
                    fmt::format("{}", shape.kv_heads), ErrorKind::kUnsupported);
  }
  const auto hidden = config["hidden_size"].get<int64_t>();
  const auto intermediate = config["intermediate_size"].get<int64_t>();
  if (intermediate % hidden != 0) {
    metadata.Refuse(metadata.ArchitectureKey("feed_forward_length"),
                    fmt::format("a multiple of {}", hidden), fmt::format("{}", intermediate));
  }
  config["d_model"] = hidden;
  config["n_layers"] = config["num_hidden_layers"];
  config["n_heads"] = shape.heads;
  config["max_seq_len"] = config["max_position_embeddings"];
  config["expansion_ratio"] = intermediate / hidden;
  config["no_bias"] = true;
  const double bias =
      metadata.FloatOr(metadata.ArchitectureKey("attention.max_alibi_bias"), 0, {0, 64});
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

constexpr GgufFamily kGptFamilies[] = {
    {"gptneox", "gpt_neox", kNeoxWhole, kNeoxLayers, false, DescribeNeox},
    {"falcon", "falcon", kFalconWhole, kFalcon40Layers, true, DescribeFalcon},
    {"falcon", "falcon", kFalconWhole, kFalconLayers, false, DescribeFalcon},
    {"mpt", "mpt", kMptWhole, kMptLayers, false, DescribeMpt},
    {"bloom", "bloom", kBloomWhole, kBloomLayers, false, DescribeBloom},
};

}  // namespace

std::span<const GgufFamily> GptGgufFamilies() { return kGptFamilies; }

}  // namespace godwit
