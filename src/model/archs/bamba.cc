#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/archs/mamba_fields.h"
#include "model/archs/mamba_gguf.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with Mamba2 in the layers that are not listed, and rotation of half of each head.
DecoderSpec DescribeBamba(const HfConfig& config) {
  constexpr std::string_view kPart = "partial_rotary_factor";
  DecoderSpec spec = DescribeLlamaShape(config);
  RequireSilu(config, "hidden_act", spec);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.mlp.bias = config.BoolOr("mlp_bias", false);
  if (config.FloatOr(kPart, 0.5, {0, 1}) != 0.5) {
    config.Refuse(kPart, "0.5, which transformers takes for every bamba model",
                  ErrorKind::kUnsupported);
  }
  ReadRotary(config, ReadRotaryDim(config, kPart, 0.5, spec), "rope_theta", spec);
  ModuleNames& names = spec.names;
  names.final_norm = "model.final_layernorm";
  names.mlp_norm = "model.layers.{}.pre_ff_layernorm";
  names.gate = "model.layers.{}.feed_forward.gate_proj";
  names.up = "model.layers.{}.feed_forward.up_proj";
  names.down = "model.layers.{}.feed_forward.down_proj";
  NameMamba("model.layers.{}.mamba", names);
  spec.mamba = ReadMamba(config, ReadExpandedWidth(config, spec));
  const std::vector<int64_t> attention = config.Ints("attn_layer_indices", {0, spec.layers - 1});
  std::vector<bool> recurrent(static_cast<size_t>(spec.layers), true);
  for (const int64_t layer : attention) recurrent[static_cast<size_t>(layer)] = false;
  ChangeLayers(spec, recurrent, [](LayerKind& kind) { kind.mixer = Mixer::kMamba2; });
  return spec;
}

namespace {

constexpr GgufName kBambaWhole[] = {{"token_embd", "model.embed_tokens"},
                                    {"output_norm", "model.final_layernorm"},
                                    {"output", "lm_head"}};

// Pairs of whole heads lie side by side in files, although only half of each head rotates.
constexpr GgufName kBambaLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj", GgufRows::kPairedQ},
    {"attn_k", "model.layers.{}.self_attn.k_proj", GgufRows::kPairedK},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.pre_ff_layernorm"},
    {"ffn_gate", "model.layers.{}.feed_forward.gate_proj"},
    {"ffn_up", "model.layers.{}.feed_forward.up_proj"},
    {"ffn_down", "model.layers.{}.feed_forward.down_proj"},
    {"ssm_in", "model.layers.{}.mamba.in_proj"},
    {"ssm_conv1d", "model.layers.{}.mamba.conv1d", GgufRows::kTaps},
    {"ssm_dt", "model.layers.{}.mamba.dt_bias", GgufRows::kAsTheyWere, ".bias"},
    {"ssm_a", "model.layers.{}.mamba.A_log", GgufRows::kVector, ""},
    {"ssm_d", "model.layers.{}.mamba.D", GgufRows::kVector, ""},
    {"ssm_norm", "model.layers.{}.mamba.norm", GgufRows::kVector},
    {"ssm_out", "model.layers.{}.mamba.out_proj"},
};

// Granite's hybrids rotate whole heads or none.
bool IsBamba(const GgufMetadata& metadata) {
  const int64_t rotated = OwnIntOr(metadata, "rope.dimension_count", 0);
  const int64_t heads = OwnInt(metadata, "attention.head_count");
  const int64_t usual = OwnInt(metadata, "embedding_length") / heads;
  return rotated > 0 && 2 * rotated == OwnIntOr(metadata, "attention.key_length", usual) &&
         OwnIntOr(metadata, "expert_count", 0) == 0;
}

void CompleteBamba(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  config["attention_bias"] = shape.qkv_bias;
  config["mlp_bias"] = shape.mlp_bias;
  CompleteMamba(metadata, shape, config);
  config["mamba_expand"] = ReadMambaExpansion(metadata);
  config["attn_layer_indices"] = nlohmann::json::array();
  const std::vector<bool>& keyless = ReadKeyless(metadata, shape);
  for (size_t i = 0; i < keyless.size(); ++i) {
    if (!keyless[i]) config["attn_layer_indices"].push_back(i);
  }
}

}  // namespace

const GgufFamily kBambaGguf = {.architecture = "granitehybrid",
                               .model_type = "bamba",
                               .whole = kBambaWhole,
                               .layers = kBambaLayers,
                               .keyless_layers = true,
                               .read_only = kMamba2IsReadOnly,
                               .fits = IsBamba,
                               .complete = CompleteBamba};

}  // namespace godwit
