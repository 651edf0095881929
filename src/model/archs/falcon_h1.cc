#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/archs/mamba_fields.h"
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

}  // namespace godwit
