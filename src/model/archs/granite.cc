#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/archs/mamba_fields.h"
#include "model/archs/mamba_gguf.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

float Factor(const HfConfig& config, std::string_view key) {
  return static_cast<float>(config.FloatOr(key, 1, {1e-6, 1e6}));
}

// Factors on embeddings, scores, residual branches and logits.
DecoderSpec DescribeWithFactors(const HfConfig& config, DecoderSpec spec) {
  spec.embedding_scale = Factor(config, "embedding_multiplier");
  spec.residual_scale = Factor(config, "residual_multiplier");
  spec.score_scale = Factor(config, "attention_multiplier");
  spec.logit_scale = 1 / Factor(config, "logits_scaling");
  return spec;
}

// godwit's own field for checkpoints with separate tensors for gate and up, and for the matrices of
// each expert.
bool GateIsApart(const HfConfig& config) { return config.BoolOr("gate_is_apart", false); }

}  // namespace

// Llama with the factors of Granite.
DecoderSpec DescribeGranite(const HfConfig& config) {
  return DescribeWithFactors(config, DescribeLlama(config));
}

// Experts replace the MLP. One tensor holds all experts of a layer.
DecoderSpec DescribeGraniteMoe(const HfConfig& config) {
  DecoderSpec spec = DescribeWithFactors(config, DescribeLlamaLike(config));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  ReadLocalExperts(config, /*experts=*/8, /*per_token=*/2, spec);
  spec.mlp.fused = spec.mlp.stacked = true;
  spec.names.router = "model.layers.{}.block_sparse_moe.router.layer";
  spec.names.up = "model.layers.{}.block_sparse_moe.input_linear";
  spec.names.down = "model.layers.{}.block_sparse_moe.output_linear";
  // vLLM's names, as for Mixtral.
  spec.names.per_expert_gate = "model.layers.{}.block_sparse_moe.experts.{}.w1";
  spec.names.per_expert_up = "model.layers.{}.block_sparse_moe.experts.{}.w3";
  spec.names.per_expert_down = "model.layers.{}.block_sparse_moe.experts.{}.w2";
  if (GateIsApart(config)) {
    spec.mlp.fused = spec.mlp.stacked = false;
    spec.names.gate = "model.layers.{}.block_sparse_moe.experts.{}.gate_proj";
    spec.names.up = "model.layers.{}.block_sparse_moe.experts.{}.up_proj";
    spec.names.down = "model.layers.{}.block_sparse_moe.experts.{}.down_proj";
  }
  return spec;
}

// GraniteMoe with an additional MLP for every token.
DecoderSpec DescribeGraniteMoeShared(const HfConfig& config) {
  DecoderSpec spec = DescribeGraniteMoe(config);
  spec.shared_mlp = {
      .activation = spec.mlp.activation,
      .intermediate = config.IntOr("shared_intermediate_size", 0, {0, kWidthRange.max}),
      .fused = true};
  spec.names.shared_up = "model.layers.{}.shared_mlp.input_linear";
  spec.names.shared_down = "model.layers.{}.shared_mlp.output_linear";
  if (GateIsApart(config)) {
    spec.shared_mlp.fused = false;
    spec.names.shared_gate = "model.layers.{}.shared_mlp.gate_proj";
    spec.names.shared_up = "model.layers.{}.shared_mlp.up_proj";
    spec.names.shared_down = "model.layers.{}.shared_mlp.down_proj";
  }
  return spec;
}

namespace {

// The shared MLP alone, where there are no experts.
void ReadSharedMlpAlone(const HfConfig& config, DecoderSpec& spec) {
  spec.mlp.intermediate = config.IntOr("shared_intermediate_size", 1024, kWidthRange);
  spec.mlp.fused = true;
  spec.names.up = "model.layers.{}.shared_mlp.input_linear";
  spec.names.down = "model.layers.{}.shared_mlp.output_linear";
}

// Whether heads rotate. Other models with attention have no positions.
bool Rotates(const HfConfig& config) {
  constexpr std::string_view kKey = "position_embedding_type";
  const std::string type = config.StringOr(kKey, "nope");
  if (type != "rope" && type != "nope") {
    config.Refuse(kKey, "rope, nope or null", ErrorKind::kUnsupported);
  }
  return type == "rope";
}

}  // namespace

// Granite with Mamba2 in most layers, and with or without experts.
DecoderSpec DescribeGraniteMoeHybrid(const HfConfig& config) {
  ExpectString(config, "normalization_function", "rmsnorm", /*fallback=*/"rmsnorm");
  const bool experts = config.IntOr("num_local_experts", 8, {0, kExpertRange.max}) > 0;
  DecoderSpec spec = experts ? DescribeGraniteMoeShared(config)
                             : DescribeWithFactors(config, DescribeLlamaLike(config));
  RequireSilu(config, "hidden_act", spec);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  if (!experts) {
    config.MarkAsRead("num_experts_per_tok");
    if (GateIsApart(config)) {
      spec.mlp.intermediate = config.Int("shared_intermediate_size", kWidthRange);
    } else {
      ReadSharedMlpAlone(config, spec);
    }
  } else if (!config.Has("shared_intermediate_size")) {
    spec.shared_mlp.intermediate = 1024;
  }
  if (!Rotates(config)) spec.rotary = {};
  NameMamba("model.layers.{}.mamba", spec.names);
  spec.mamba = ReadMamba(config, ReadExpandedWidth(config, spec));
  ChangeLayers(spec,
               ReadMambaLayers(config, std::vector<bool>(static_cast<size_t>(spec.layers), true)),
               [](LayerKind& kind) { kind.mixer = Mixer::kMamba2; });
  return spec;
}

namespace {

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
    {"ssm_in", "model.layers.{}.mamba.in_proj"},
    {"ssm_conv1d", "model.layers.{}.mamba.conv1d", GgufRows::kTaps},
    {"ssm_dt", "model.layers.{}.mamba.dt_bias", GgufRows::kAsTheyWere, ".bias"},
    {"ssm_a", "model.layers.{}.mamba.A_log", GgufRows::kVector, ""},
    {"ssm_d", "model.layers.{}.mamba.D", GgufRows::kVector, ""},
    {"ssm_norm", "model.layers.{}.mamba.norm", GgufRows::kVector},
    {"ssm_out", "model.layers.{}.mamba.out_proj"},
};

// The file's scale of the logits divides them. Without a scale of scores they have the usual one.
void CompleteFactors(const GgufShape& shape, nlohmann::json& config) {
  if (config.value("attention_multiplier", nlohmann::json()).is_null()) {
    config["attention_multiplier"] = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  }
  config["attention_bias"] = shape.qkv_bias;
  config["mlp_bias"] = shape.mlp_bias;
  if (config.contains("logit_scale")) config["logits_scaling"] = config["logit_scale"];
  config.erase("logit_scale");
}

bool FileRotates(const GgufMetadata& metadata) {
  return metadata.BoolOr(metadata.ArchitectureKey("rope.scaling.finetuned"), true);
}

void CompleteGranite(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  if (!FileRotates(metadata)) {
    metadata.Refuse(metadata.ArchitectureKey("rope.scaling.finetuned"),
                    "true, because layers without positions are not supported", "false",
                    ErrorKind::kUnsupported);
  }
  CompleteFactors(shape, config);
}

void CompleteGraniteMoe(const GgufMetadata& metadata, const GgufShape& shape,
                        nlohmann::json& config) {
  CompleteGranite(metadata, shape, config);
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

// Layers without KV heads are Mamba2.
void CompleteGraniteHybrid(const GgufMetadata& metadata, const GgufShape& shape,
                           nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  CompleteFactors(shape, config);
  config["position_embedding_type"] = FileRotates(metadata) ? "rope" : "nope";
  config["gate_is_apart"] = true;
  const int64_t experts = OwnIntOr(metadata, "expert_count", 0);
  config["num_local_experts"] = experts;
  if (experts > 0) {
    config["num_experts_per_tok"] = OwnInt(metadata, "expert_used_count");
    config["shared_intermediate_size"] = OwnInt(metadata, "expert_shared_feed_forward_length");
  } else {
    config["shared_intermediate_size"] = config["intermediate_size"];
  }
  CompleteMamba(metadata, shape, config);
  config["mamba_expand"] = ReadMambaExpansion(metadata);
  for (const bool keyless : ReadKeyless(metadata, shape)) {
    config["layer_types"].push_back(keyless ? "mamba" : "attention");
  }
}

}  // namespace

const GgufFamily kGraniteGguf = {.architecture = "granite",
                                 .model_type = "granite",
                                 .layers = kGraniteLayers,
                                 .complete = CompleteGranite};
const GgufFamily kGraniteMoeGguf = {.architecture = "granitemoe",
                                    .model_type = "granitemoe",
                                    .other_types = {"granitemoeshared"},
                                    .layers = kGraniteLayers,
                                    .complete = CompleteGraniteMoe};
const GgufFamily kGraniteHybridGguf = {.architecture = "granitehybrid",
                                       .model_type = "granitemoehybrid",
                                       .layers = kGraniteLayers,
                                       .keyless_layers = true,
                                       .read_only = kMamba2IsReadOnly,
                                       .complete = CompleteGraniteHybrid};

}  // namespace godwit
