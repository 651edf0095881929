// The list of architectures of GGUF that are translated, and the parts that several files share.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "model/gguf_family.h"

namespace godwit {

// Each is in the file of its family.
extern const GgufFamily kApertusGguf;
extern const GgufFamily kBambaGguf;
extern const GgufFamily kBloomGguf;
extern const GgufFamily kCohere2Gguf;
extern const GgufFamily kCohereGguf;
extern const GgufFamily kDeepseekGguf;
extern const GgufFamily kErnieGguf;
extern const GgufFamily kErnieMoeGguf;
extern const GgufFamily kExaone4Gguf;
extern const GgufFamily kFalcon40Gguf;
extern const GgufFamily kFalconGguf;
extern const GgufFamily kFalconH1Gguf;
extern const GgufFamily kGemma2Gguf;
extern const GgufFamily kGemma3Gguf;
extern const GgufFamily kGemma3nGguf;
extern const GgufFamily kGemma4Gguf;
extern const GgufFamily kGemmaGguf;
extern const GgufFamily kGlm4Gguf;
extern const GgufFamily kGlm4MoeGguf;
extern const GgufFamily kGptNeoxGguf;
extern const GgufFamily kGptOssGguf;
extern const GgufFamily kGraniteGguf;
extern const GgufFamily kGraniteHybridGguf;
extern const GgufFamily kGraniteMoeGguf;
extern const GgufFamily kHunyuanDenseGguf;
extern const GgufFamily kHunyuanMoeGguf;
extern const GgufFamily kInternLm2Gguf;
extern const GgufFamily kLfm2Gguf;
extern const GgufFamily kLfm2MoeGguf;
extern const GgufFamily kLlama4Gguf;
extern const GgufFamily kLlamaGguf;
extern const GgufFamily kMiniMaxGguf;
extern const GgufFamily kMistral4Gguf;
extern const GgufFamily kMptGguf;
extern const GgufFamily kNemotronHGguf;
extern const GgufFamily kNemotronHMoeGguf;
extern const GgufFamily kOlmo2Gguf;
extern const GgufFamily kOlmoGguf;
extern const GgufFamily kPhi3Gguf;
extern const GgufFamily kQwen2Gguf;
extern const GgufFamily kQwen35Gguf;
extern const GgufFamily kQwen35MoeGguf;
extern const GgufFamily kQwen3Gguf;
extern const GgufFamily kQwen3MoeGguf;
extern const GgufFamily kQwen3NextGguf;
extern const GgufFamily kSeedOssGguf;
extern const GgufFamily kStableLmGguf;
extern const GgufFamily kStarcoder2Gguf;

// All of these. FindGgufFamily takes the first that fits of two with one architecture.
std::span<const GgufFamily* const> AllGgufFamilies();

// Throws Error(kUnsupported) that names those there are.
const GgufFamily& FindGgufFamily(const GgufMetadata& metadata, bool second_attention_norm);

// Names in the files of Llama's converter, which also writes Mistral, Mixtral and InternLM2.
inline constexpr GgufName kLlamaGgufLayers[] = {
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

// Names of Qwen 2 and 3, whose rotary pairs lie as Hugging Face has them.
inline constexpr GgufName kQwenGgufLayers[] = {
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

// Names of OLMo 2 and EXAONE 4, which have their norms behind attention and MLP.
inline constexpr GgufName kPostNormGgufLayers[] = {
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

// GgufFamily::read_only of several families.
inline constexpr std::string_view kMamba2IsReadOnly =
    "its Mamba2 layers lie otherwise in GGUF files, which godwit reads but does not write";
inline constexpr std::string_view kDeltaNetIsReadOnly =
    "its gated DeltaNets lie otherwise in GGUF files, which godwit reads but does not write";
inline constexpr std::string_view kUnequalLayersAreReadOnly =
    "its layers have unequal heads or embeddings of their own, of which godwit reads GGUF files "
    "but does not write them";
inline constexpr std::string_view kMistral4IsReadOnly =
    "godwit reads GGUF files of Mistral 4 but does not write them";

// Names of a layer that predicts, of DeepSeek and GLM.
inline constexpr GgufName kPredictionGgufNames[] = {
    {"nextn.eh_proj", "model.layers.{}.eh_proj"},
    {"nextn.enorm", "model.layers.{}.enorm"},
    {"nextn.hnorm", "model.layers.{}.hnorm"},
    {"nextn.shared_head_norm", "model.layers.{}.shared_head.norm"},
};

// GgufFamily::complete of several families.
void CompleteLlama(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config);
void CompleteQwen3(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config);

}  // namespace godwit
