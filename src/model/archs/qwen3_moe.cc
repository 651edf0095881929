#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

void NameExperts(ModuleNames& names) {
  names.dense_gate = names.gate;
  names.dense_up = names.up;
  names.dense_down = names.down;
  names.router = "model.layers.{}.mlp.gate";
  names.gate = "model.layers.{}.mlp.experts.{}.gate_proj";
  names.up = "model.layers.{}.mlp.experts.{}.up_proj";
  names.down = "model.layers.{}.mlp.experts.{}.down_proj";
}

// Qwen3 with experts instead of the MLP, except in layers that the config makes dense.
DecoderSpec DescribeQwen3Moe(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.qk_norm = QkNorm::kHeads;
  const MlpSpec dense = spec.mlp;
  spec.mlp.intermediate = config.IntOr("moe_intermediate_size", 768, kWidthRange);
  // transformers 5 writes num_local_experts, the newer name.
  spec.mlp.experts = config.IntOr(
      config.Has("num_local_experts") ? "num_local_experts" : "num_experts", 128, kExpertRange);
  const int64_t usual = std::min<int64_t>(8, spec.mlp.experts);
  spec.mlp.experts_per_token = config.IntOr("num_experts_per_tok", usual, {1, spec.mlp.experts});
  spec.mlp.shares_among_chosen = config.BoolOr("norm_topk_prob", false);
  const int64_t step = config.IntOr("decoder_sparse_step", 1, kLayerRange);
  const std::vector<int64_t> listed = config.Ints("mlp_only_layers", {0, kLayerRange.max});
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    if ((layer + 1) % step != 0 || std::ranges::count(listed, layer) > 0) kind.mlp = dense;
  });
  // Windows are in all layers: transformers knows no max_window_layers here.
  if (config.BoolOr("use_sliding_window", false)) {
    ReadWindows(config, /*first_windowed=*/0, spec);
  } else {
    config.MarkAsRead("sliding_window");
  }
  NameExperts(spec.names);
  return spec;
}

namespace {

// Every published model takes shares among the chosen experts, and no key says otherwise.
void CompleteQwen3Moe(const GgufMetadata& metadata, const GgufShape& shape,
                      nlohmann::json& config) {
  CompleteQwen3(metadata, shape, config);
  config["num_experts"] = metadata.Int(metadata.ArchitectureKey("expert_count"), kSizeRange);
  config["num_experts_per_tok"] =
      metadata.Int(metadata.ArchitectureKey("expert_used_count"), kSizeRange);
  config["moe_intermediate_size"] =
      metadata.Int(metadata.ArchitectureKey("expert_feed_forward_length"), kSizeRange);
  config["norm_topk_prob"] = true;
}

}  // namespace

const GgufFamily kQwen3MoeGguf = {.architecture = "qwen3moe",
                                  .model_type = "qwen3_moe",
                                  .layers = kQwenGgufLayers,
                                  .complete = CompleteQwen3Moe};

}  // namespace godwit
