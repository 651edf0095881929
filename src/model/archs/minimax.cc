#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// Published files state the number of dimensions, transformers 5 their part of a head.
int64_t ReadRotated(const HfConfig& config, const DecoderSpec& spec) {
  const int64_t rotated = config.IntOr("rotary_dim", spec.head_dim, {0, spec.head_dim});
  const double part = static_cast<double>(rotated) / static_cast<double>(spec.head_dim);
  return ReadRotaryDim(config, "partial_rotary_factor", part, spec);
}

}  // namespace

// Llama with norms of queries and keys over all heads, a part of a head that rotates, and experts
// that are chosen by sigmoids.
DecoderSpec DescribeMiniMaxM2(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.default_head_dim = 128});
  ReadRotary(config, ReadRotated(config, spec), "rope_theta", spec, /*default_theta=*/5e6);
  ExpectBool(config, "use_qk_norm", true, /*fallback=*/true);
  ExpectString(config, "qk_norm_type", "per_layer", /*fallback=*/"per_layer");
  spec.qk_norm = QkNorm::kAllHeads;
  ExpectString(config, "scoring_func", "sigmoid", /*fallback=*/"sigmoid");
  ExpectBool(config, "use_routing_bias", true, /*fallback=*/true);
  if (!config.IsAmong("attn_type_list", "[1]")) {
    config.Refuse("attn_type_list", "1 for every layer", ErrorKind::kUnsupported);
  }
  ReadLocalExperts(config, /*experts=*/256, /*per_token=*/8, spec);
  spec.mlp.choice.score = ops::ExpertScore::kSigmoid;
  spec.mlp.choice_bias = true;

  ModuleNames& names = spec.names;
  names.router = "model.layers.{}.block_sparse_moe.gate";
  names.choice_bias = "model.layers.{}.block_sparse_moe.e_score_correction_bias";
  names.gate = "model.layers.{}.block_sparse_moe.experts.{}.w1";
  names.up = "model.layers.{}.block_sparse_moe.experts.{}.w3";
  names.down = "model.layers.{}.block_sparse_moe.experts.{}.w2";
  // Layers behind the last one predict more tokens.
  const int64_t more = config.IntOr("num_mtp_modules", 0, {0, 64});
  for (int64_t i = 0; i < more; ++i) {
    names.others.push_back(fmt::format("model.layers.{}.", spec.layers + i));
  }
  return spec;
}

namespace {

constexpr GgufName kMiniMaxLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"},
    {"exp_probs_b", "model.layers.{}.block_sparse_moe.e_score_correction_bias",
     GgufRows::kAsTheyWere, ".bias"},
    {"ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.{}.w1", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.{}.w3", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.{}.w2", GgufRows::kExperts},
};

void CompleteMiniMax(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  config["head_dim"] = shape.head_dim;
  config["partial_rotary_factor"] = RotatedPart(metadata, shape);
  config["num_local_experts"] = OwnInt(metadata, "expert_count");
  config["num_experts_per_tok"] = OwnInt(metadata, "expert_used_count");
  config["intermediate_size"] = OwnInt(metadata, "expert_feed_forward_length");
}

}  // namespace

const GgufFamily kMiniMaxGguf = {.architecture = "minimax-m2",
                                 .model_type = "minimax_m2",
                                 .layers = kMiniMaxLayers,
                                 .complete = CompleteMiniMax};

}  // namespace godwit
