#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
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

constexpr FloatRange kFactorRange{1e-6, 1e6};

float FactorOr1(const HfConfig& config, std::string_view key) {
  return static_cast<float>(config.FloatOr(key, 1, kFactorRange));
}

// A list of factors, or all 1 where it is absent.
std::vector<float> Factors(const HfConfig& config, std::string_view key, size_t count) {
  const std::vector<double> stated = config.Floats(key, kFactorRange);
  if (stated.empty()) return std::vector<float>(count, 1.0f);
  if (stated.size() != count) config.Refuse(key, fmt::format("{} factors", count));
  return {stated.begin(), stated.end()};
}

// A factor on an input goes to the results, which a bias would not follow.
void RefuseBiasBehindFactor(const HfConfig& config, std::string_view key, bool bias, float factor) {
  if (!bias || factor == 1) return;
  config.Refuse(key, "1 where the projection behind it has a bias", ErrorKind::kUnsupported);
}

// Factors on the input of attention, its keys and its results.
void ReadAttentionFactors(const HfConfig& config, DecoderSpec& spec) {
  constexpr std::string_view kIn = "attention_in_multiplier";
  const float in = FactorOr1(config, kIn);
  RefuseBiasBehindFactor(config, kIn, spec.qkv_bias, in);
  spec.score_scale =
      FactorOr1(config, "key_multiplier") * in * in / std::sqrt(static_cast<float>(spec.head_dim));
  spec.attention_scale = in * FactorOr1(config, "attention_out_multiplier");
}

void ReadMambaFactors(const HfConfig& config, Mamba2Spec& mamba) {
  constexpr std::string_view kIn = "ssm_in_multiplier";
  const float in = FactorOr1(config, kIn);
  RefuseBiasBehindFactor(config, kIn, mamba.in_bias, in);
  const std::vector<float> parts = Factors(config, "ssm_multipliers", mamba.in_scales.size());
  for (size_t i = 0; i < parts.size(); ++i) mamba.in_scales[i] = in * parts[i];
  mamba.out_scale = FactorOr1(config, "ssm_out_multiplier");
}

}  // namespace

// Attention and Mamba2 side by side in every layer, with factors everywhere.
DecoderSpec DescribeFalconH1(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config);
  RequireSilu(config, "hidden_act", spec);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.mlp.bias = config.BoolOr("mlp_bias", false);
  ReadRotary(config, spec.head_dim, "rope_theta", spec);
  ReadAttentionFactors(config, spec);
  spec.embedding_scale = FactorOr1(config, "embedding_multiplier");
  spec.logit_scale = FactorOr1(config, "lm_head_multiplier");
  const std::vector<float> of_mlp = Factors(config, "mlp_multipliers", 2);
  spec.mlp.gate_scale = of_mlp[0];
  spec.mlp.out_scale = of_mlp[1];

  const int64_t expanded = ReadExpandedWidth(config, spec);
  const int64_t width =
      config.IsNull("mamba_d_ssm") ? expanded : config.IntOr("mamba_d_ssm", 1024, kWidthRange);
  spec.mixer = Mixer::kMamba2;
  spec.attention_beside = true;
  spec.mamba = ReadMamba(config, width);
  spec.mamba.out_bias = config.BoolOr("projectors_bias", false);
  ReadMambaFactors(config, spec.mamba);
  const bool before = config.BoolOr("mamba_norm_before_gate", true);
  spec.mamba.norm = !config.BoolOr("mamba_rms_norm", false) ? Mamba2Norm::kNone
                    : before                                ? Mamba2Norm::kBeforeGate
                                                            : Mamba2Norm::kBehindGate;
  ModuleNames& names = spec.names;
  names.final_norm = "model.final_layernorm";
  names.mlp_norm = "model.layers.{}.pre_ff_layernorm";
  names.gate = "model.layers.{}.feed_forward.gate_proj";
  names.up = "model.layers.{}.feed_forward.up_proj";
  names.down = "model.layers.{}.feed_forward.down_proj";
  NameMamba("model.layers.{}.mamba", names);
  return spec;
}

namespace {

constexpr GgufName kFalconH1Whole[] = {{"token_embd", "model.embed_tokens"},
                                       {"output_norm", "model.final_layernorm"},
                                       {"output", "lm_head"}};

// The norm of the MLP has no ending in files.
constexpr GgufName kFalconH1Layers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.pre_ff_layernorm.weight"},
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

// Matrices in files have taken in all factors.
void CompleteFalconH1(const GgufMetadata& metadata, const GgufShape& shape,
                      nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
  config["mlp_bias"] = shape.mlp_bias;
  CompleteMamba(metadata, shape, config);
  config["mamba_d_ssm"] = ReadMambaSizes(metadata).width;
  config["mamba_rms_norm"] = shape.mamba_norm;
  config["mamba_norm_before_gate"] = false;  // as in llama.cpp
}

}  // namespace

const GgufFamily kFalconH1Gguf = {.architecture = "falcon-h1",
                                  .model_type = "falcon_h1",
                                  .whole = kFalconH1Whole,
                                  .layers = kFalconH1Layers,
                                  .read_only = kMamba2IsReadOnly,
                                  .complete = CompleteFalconH1};

}  // namespace godwit
