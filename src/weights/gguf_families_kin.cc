#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "weights/gguf_families.h"
#include "weights/gguf_family_fields.h"

namespace godwit {
namespace {

using nlohmann::json;

// --- Phi-3: q, k and v in one tensor, gate and up in another ----------------------------------

constexpr GgufName kPhi3Layers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_up", "model.layers.{}.mlp.gate_up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};

void DescribePhi3(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
}

// --- Granite ----------------------------------------------------------------------------------

constexpr GgufName kGraniteLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj", GgufRows::kPairedQ},
    {"attn_k", "model.layers.{}.self_attn.k_proj", GgufRows::kPairedK},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.block_sparse_moe.router.layer"},
    {"ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.{}.down_proj", GgufRows::kExperts},
    {"ffn_gate_shexp", "model.layers.{}.shared_mlp.gate_proj"},
    {"ffn_up_shexp", "model.layers.{}.shared_mlp.up_proj"},
    {"ffn_down_shexp", "model.layers.{}.shared_mlp.down_proj"},
};

// The file's scale of the logits divides them.
void DescribeGranite(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  RequireWholeRotation(metadata, shape);
  const std::string rotates = metadata.ArchitectureKey("rope.scaling.finetuned");
  if (!metadata.BoolOr(rotates, true)) {
    metadata.Refuse(rotates, "true, because layers without positions are not supported", "false",
                    ErrorKind::kUnsupported);
  }
  config["attention_bias"] = shape.qkv_bias;
  config["mlp_bias"] = shape.mlp_bias;
  if (config.contains("logit_scale")) config["logits_scaling"] = config["logit_scale"];
  config.erase("logit_scale");
}

void DescribeGraniteMoe(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  DescribeGranite(metadata, shape, config);
  config["num_local_experts"] = metadata.Int(metadata.ArchitectureKey("expert_count"), kSizeRange);
  config["num_experts_per_tok"] =
      metadata.Int(metadata.ArchitectureKey("expert_used_count"), kSizeRange);
  config["gate_is_apart"] = true;
  const int64_t shared = metadata.IntOr(
      metadata.ArchitectureKey("expert_shared_feed_forward_length"), 0, {0, kSizeRange.max});
  if (shared == 0) return;
  config["model_type"] = "granitemoeshared";
  config["shared_intermediate_size"] = shared;
}

// --- OLMo -------------------------------------------------------------------------------------

constexpr GgufName kOlmoLayers[] = {
    {"attn_q", "model.layers.{}.self_attn.q_proj", GgufRows::kPairedQ},
    {"attn_k", "model.layers.{}.self_attn.k_proj", GgufRows::kPairedK},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};
constexpr GgufName kOlmo2Layers[] = {
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
};

// No field of config.json has the epsilon of OLMo's norms.
void DescribeOlmo(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  RequireWholeRotation(metadata, shape);
  const std::string key = metadata.ArchitectureKey("attention.layer_norm_epsilon");
  const double epsilon = metadata.FloatOr(key, 1e-5, {0, 1});
  if (static_cast<float>(epsilon) != 1e-5f) {
    metadata.Refuse(key, "1e-05", fmt::format("{}", epsilon), ErrorKind::kUnsupported);
  }
  config["attention_bias"] = shape.qkv_bias;
}

// OLMo 3 has OLMo 2's name in GGUF, and windows.
void DescribeOlmo2(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
  if (config.value("sliding_window", json()).is_null()) return;
  config["model_type"] = "olmo3";
  ReadWindowPattern(metadata, config);
  if (config.value("rope_local_base_freq", json()) == config["rope_theta"]) {
    config.erase("rope_local_base_freq");
  }
}

// --- StableLM ---------------------------------------------------------------------------------

constexpr GgufName kStableLmLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_layernorm.norms.{}", GgufRows::kHeads},
    {"attn_k_norm", "model.layers.{}.self_attn.k_layernorm.norms.{}", GgufRows::kHeads},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};

// Files say use_parallel_residual even of models without it, whose config.json does not.
void DescribeStableLm(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
  config["use_qkv_bias"] = shape.qkv_bias;
  config["use_parallel_residual"] = !shape.mlp_norm;
  config["qk_layernorm"] = shape.qk_norm;
}

// --- StarCoder2 -------------------------------------------------------------------------------

constexpr GgufName kStarcoder2Layers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_up", "model.layers.{}.mlp.c_fc"},
    {"ffn_down", "model.layers.{}.mlp.c_proj"},
};

// No key says so, but every published model has a window of 4096 tokens.
void DescribeStarcoder2(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  constexpr int64_t kWindow = 4096;
  RequireWholeRotation(metadata, shape);
  config["use_bias"] = shape.qkv_bias;
  if (config.contains("layer_norm_eps")) config["norm_epsilon"] = config["layer_norm_eps"];
  if (!config.contains("sliding_window")) config["sliding_window"] = kWindow;
}

// --- Command R: the pairs lie side by side in Hugging Face's files, too ------------------------

constexpr GgufName kCohereLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
};

void DescribeCohere2(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
  if (config.value("logit_scale", json()).is_null()) config["logit_scale"] = 1;
  ReadWindowPattern(metadata, config);
}

void DescribeCohere(const GgufMetadata& metadata, const GgufShape& shape, json& config) {
  DescribeCohere2(metadata, shape, config);
  config["use_qk_norm"] = shape.qk_norm;
}

constexpr GgufFamily kKinFamilies[] = {
    {"phi3", "phi3", kLlamaGgufWhole, kPhi3Layers, false, DescribePhi3},
    {"granite", "granite", kLlamaGgufWhole, kGraniteLayers, false, DescribeGranite},
    {"granitemoe", "granitemoe", kLlamaGgufWhole, kGraniteLayers, false, DescribeGraniteMoe},
    {"olmo", "olmo", kLlamaGgufWhole, kOlmoLayers, false, DescribeOlmo},
    {"olmo2", "olmo2", kLlamaGgufWhole, kOlmo2Layers, false, DescribeOlmo2},
    {"stablelm", "stablelm", kLlamaGgufWhole, kStableLmLayers, false, DescribeStableLm},
    {"starcoder2", "starcoder2", kLlamaGgufWhole, kStarcoder2Layers, false, DescribeStarcoder2},
    {"command-r", "cohere", kLlamaGgufWhole, kCohereLayers, false, DescribeCohere},
    {"cohere2", "cohere2", kLlamaGgufWhole, kCohereLayers, false, DescribeCohere2},
};

}  // namespace

std::span<const GgufFamily> KinGgufFamilies() { return kKinFamilies; }

}  // namespace godwit
