#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// 2^(-bias_max i / n) for i = 1 .. n, where n is the least power of two that is not below the
// number of heads. If n is above it, even i come first.
std::vector<float> MptSlopes(int64_t heads, int64_t bias_max) {
  const auto n = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t evens_first = head < n / 2 ? 2 * head + 2 : 2 * (head - n / 2) + 1;
    const int64_t i = n == heads ? head + 1 : evens_first;
    slopes.push_back(
        static_cast<float>(std::exp2(-static_cast<double>(bias_max * i) / static_cast<double>(n))));
  }
  return slopes;
}

// Refuses switches of MPT's own code that Hugging Face's port never turns on.
void RefuseVariations(const HfConfig& config, const HfConfig& attention) {
  const auto require = [](const HfConfig& fields, std::string_view key, bool value) {
    if (fields.BoolOr(key, value) != value) fields.Refuse(key, value ? "true" : "false");
  };
  require(attention, "alibi", true);
  require(attention, "qk_ln", false);
  require(attention, "prefix_lm", false);
  require(config, "no_bias", true);
  if (attention.StringOr("attn_type", "multihead_attention") != "multihead_attention") {
    attention.Refuse("attn_type", "multihead_attention");
  }
  const std::string norm = config.StringOr("norm_type", "low_precision_layernorm");
  if (norm != "low_precision_layernorm" && norm != "layernorm") {
    config.Refuse("norm_type", "low_precision_layernorm or layernorm");
  }
  if (config.Has("logit_scale")) config.Refuse("logit_scale", "null");
}

}  // namespace

// LayerNorm without bias, no other biases, and ALiBi. One tensor has q, then k, then v. The MLP is
// a plain GELU unit, and the head is tied.
DecoderSpec DescribeMpt(const HfConfig& config) {
  DecoderSpec spec;
  ReadCommonFields(config, spec,
                   {.hidden_size = "d_model",
                    .layers = "n_layers",
                    .heads = "n_heads",
                    .kv_heads = "",
                    .head_dim = "",
                    .intermediate = "",
                    .max_context = "max_seq_len",
                    .activation = "",
                    .tied_by_default = true});
  const HfConfig attention = config.Object("attn_config").value_or(HfConfig::Parse("{}", ""));
  RefuseVariations(config, attention);
  spec.alibi.slopes = MptSlopes(spec.heads, attention.IntOr("alibi_bias_max", 8, {1, 64}));
  if (attention.Has("softmax_scale")) {
    spec.score_scale = static_cast<float>(attention.Float("softmax_scale", {1e-6, 1e6}));
  }
  const double clip = attention.FloatOr("clip_qkv", 0, {0, 1e6});
  if (clip != 0) spec.clip_qkv = static_cast<float>(clip);

  spec.norm = ops::NormKind::kLayer;
  spec.norm_epsilon = static_cast<float>(config.FloatOr("layer_norm_epsilon", 1e-5, {0, 1}));
  spec.qkv_layout = QkvLayout::kFused;
  spec.mlp.gated = false;
  spec.mlp.activation = ops::Activation::kGeluErf;
  spec.mlp.intermediate = spec.hidden_size * config.IntOr("expansion_ratio", 4, {1, 64});
  spec.names = {
      .embedding = "transformer.wte",
      .final_norm = "transformer.norm_f",
      .head = "lm_head",
      .attention_norm = "transformer.blocks.{}.norm_1",
      .qkv = "transformer.blocks.{}.attn.Wqkv",
      .attention_out = "transformer.blocks.{}.attn.out_proj",
      .mlp_norm = "transformer.blocks.{}.norm_2",
      .up = "transformer.blocks.{}.ffn.up_proj",
      .down = "transformer.blocks.{}.ffn.down_proj",
  };
  return spec;
}

namespace {

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

void CompleteMpt(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
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

}  // namespace

const GgufFamily kMptGguf = {.architecture = "mpt",
                             .model_type = "mpt",
                             .whole = kMptWhole,
                             .layers = kMptLayers,
                             .complete = CompleteMpt};

}  // namespace godwit
