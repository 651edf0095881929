#include "model/archs/mamba_fields.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

constexpr IntRange kStateRange{1, 4096};

ops::StepRange ReadSteps(const HfConfig& config, std::string_view key) {
  const std::vector<double> limit =
      config.Floats(key, {0, std::numeric_limits<double>::infinity()});
  if (limit.empty()) return {};
  if (limit.size() != 2 || limit[0] > limit[1]) {
    config.Refuse(key, "a least and a greatest step");
  }
  return {.min = static_cast<float>(limit[0]), .max = static_cast<float>(limit[1])};
}

}  // namespace

void ReadMambaCommon(const HfConfig& config, const MambaKeys& keys, Mamba2Spec& mamba) {
  const auto one_of = [&](std::string_view key, std::string_view other) {
    return config.Has(other) ? other : key;
  };
  ops::MatrixStateShape& shape = mamba.shape;
  const std::string_view groups = one_of(keys.groups, keys.other_groups);
  shape.key_heads = config.IntOr(groups, keys.default_groups, kHeadRange);
  if (shape.value_heads % shape.key_heads != 0) {
    config.Refuse(groups, fmt::format("a divisor of {} heads", shape.value_heads));
  }
  shape.taps =
      config.IntOr(one_of(keys.taps, keys.other_taps), 4, {1, ShortConvolutionSpec::kMostTaps});
  mamba.convolution_bias = config.BoolOr(one_of(keys.conv_bias, keys.other_conv_bias), true);
  mamba.steps = ReadSteps(config, one_of(keys.limit, keys.other_limit));
  mamba.rates_negated = config.BoolOr("decay_rates_negated", false);
}

Mamba2Spec ReadMamba(const HfConfig& config, int64_t width) {
  Mamba2Spec mamba;
  ops::MatrixStateShape& shape = mamba.shape;
  shape.value_heads = config.IntOr("mamba_n_heads", 128, kHeadRange);
  if (width % shape.value_heads != 0 || width / shape.value_heads > kHeadDimRange.max) {
    config.Refuse("mamba_n_heads", fmt::format("a divisor of {} numbers into heads of at most {}",
                                               width, kHeadDimRange.max));
  }
  shape.value_dim = width / shape.value_heads;
  if (!config.IsAmong("mamba_d_head", R"(["auto"])") &&
      config.Int("mamba_d_head", kHeadDimRange) != shape.value_dim) {
    config.Refuse("mamba_d_head", fmt::format("{}, as {} heads of {} numbers have", shape.value_dim,
                                              shape.value_heads, width));
  }
  config.MarkAsRead("mamba_d_head");
  shape.key_dim = config.IntOr("mamba_d_state", 256, kStateRange);
  mamba.in_bias = mamba.out_bias = config.BoolOr("mamba_proj_bias", false);
  ReadMambaCommon(config, {}, mamba);
  return mamba;
}

int64_t ReadExpandedWidth(const HfConfig& config, const DecoderSpec& spec) {
  return config.IntOr("mamba_expand", 2, {1, 64}) * spec.hidden_size;
}

std::vector<bool> ReadMambaLayers(const HfConfig& config, const std::vector<bool>& otherwise) {
  const std::string_view key = config.Has("layer_types") ? "layer_types" : "layers_block_type";
  const std::vector<std::string> types = config.Strings(key);
  if (types.empty()) return otherwise;
  if (types.size() != otherwise.size()) {
    config.Refuse(key, fmt::format("one entry for each of {} layers", otherwise.size()));
  }
  std::vector<bool> layers;
  for (const std::string& type : types) {
    layers.push_back(type == "mamba" || type == "linear_attention");
    if (!layers.back() && type != "attention" && type != "full_attention") {
      config.Refuse(key, "mamba or attention for every layer", ErrorKind::kUnsupported);
    }
  }
  return layers;
}

void NameMamba(std::string_view module, ModuleNames& names) {
  const auto part = [&](std::string_view name) { return std::string(module).append(name); };
  names.mixer_in = part(".in_proj");
  names.mixer_out = part(".out_proj");
  names.convolution = part(".conv1d");
  names.mixer_norm = part(".norm");
  names.decay_rates = part(".A_log");
  names.decay_biases = part(".dt_bias");
  names.skips = part(".D");
}

void RequireSilu(const HfConfig& config, std::string_view key, const DecoderSpec& spec) {
  if (spec.mlp.activation == ops::Activation::kSilu) return;
  config.Refuse(key, "silu, which convolutions of recurrent layers have", ErrorKind::kUnsupported);
}

}  // namespace godwit
